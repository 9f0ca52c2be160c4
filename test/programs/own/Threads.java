// What Java's runtime does with threads: monitors, pools, queues, streams, timers, sockets, collection, children, interrupts,
// and the two signals that it makes its own errors of.
import java.io.*;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.stream.*;

public class Threads {
	static int count;

	static synchronized void increment() { count++; }

	static void monitors() throws Exception {
		AtomicLong atomic = new AtomicLong();
		Thread[] all = new Thread[16];
		for (int i = 0; i < 16; i++) {
			all[i] = new Thread(() -> { for (int k = 0; k < 20000; k++) { increment(); atomic.incrementAndGet(); } });
			all[i].start();
		}
		for (Thread t : all) t.join();
		System.out.println("counters " + count + " " + atomic.get());
	}

	static void pools() throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(8);
		List<Future<Integer>> results = new ArrayList<>();
		for (int i = 1; i <= 200; i++) {
			final int n = i;
			results.add(pool.submit(() -> { int s = 0; for (int k = 0; k < 10000; k++) s += k % n; return s; }));
		}
		long sum = 0;
		for (Future<Integer> f : results) sum += f.get();
		pool.shutdown();
		System.out.println("pool " + sum);
		System.out.println("streams " + IntStream.range(0, 1000000).parallel().mapToLong(x -> x * 3L % 7).sum());
		ScheduledExecutorService timers = Executors.newScheduledThreadPool(2);
		CountDownLatch latch = new CountDownLatch(20);
		for (int i = 0; i < 20; i++) timers.schedule(latch::countDown, i, TimeUnit.MILLISECONDS);
		latch.await();
		timers.shutdown();
		System.out.println("timers");
	}

	static void queues() throws Exception {
		BlockingQueue<Integer> q = new ArrayBlockingQueue<>(4), r = new SynchronousQueue<>();
		new Thread(() -> { try { for (int i = 0; i < 5000; i++) q.put(i); q.put(-1); } catch (Exception e) { } }).start();
		new Thread(() -> { try { int v; do { v = q.take(); r.put(v); } while (v >= 0); } catch (Exception e) { } }).start();
		long s = 0;
		for (int v; (v = r.take()) >= 0;) s += v;
		System.out.println("queues " + s);
	}

	static String line(Socket s) throws Exception {
		return new BufferedReader(new InputStreamReader(s.getInputStream())).readLine();
	}

	static void sockets() throws Exception {
		ServerSocket server = new ServerSocket(0);
		AtomicInteger right = new AtomicInteger();
		Thread[] clients = new Thread[8];
		new Thread(() -> {
			try {
				for (int i = 0; i < 8; i++) {
					Socket s = server.accept();
					new Thread(() -> {
						try { s.getOutputStream().write((line(s) + " back\n").getBytes()); s.close(); }
						catch (Exception e) { e.printStackTrace(); }
					}).start();
				}
			} catch (Exception e) { e.printStackTrace(); }
		}).start();
		for (int i = 0; i < 8; i++) {
			final int n = i;
			clients[i] = new Thread(() -> {
				try (Socket s = new Socket("127.0.0.1", server.getLocalPort())) {
					s.getOutputStream().write(("hello" + n + "\n").getBytes());
					if (line(s).equals("hello" + n + " back")) right.incrementAndGet();
				} catch (Exception e) { e.printStackTrace(); }
			});
			clients[i].start();
		}
		for (Thread t : clients) t.join();
		System.out.println("sockets " + right);
	}

	static int deep(int n) { return deep(n + 1) + 1; }

	static void errors() throws Exception {
		Thread t = new Thread(() -> {
			try { Thread.sleep(100000); } catch (InterruptedException e) { System.out.println("interrupted"); }
		});
		t.start();
		Thread.sleep(20);
		t.interrupt();
		t.join();
		Object[] none = { null };
		try { ((String)none[0]).length(); } catch (NullPointerException e) { System.out.println("no object"); }
		try { deep(0); } catch (StackOverflowError e) { System.out.println("no stack"); }
	}

	public static void main(String[] args) throws Exception {
		monitors();
		pools();
		queues();
		sockets();
		for (int i = 0; i < 40000; i++) { byte[] garbage = new byte[10000]; garbage[i % 10000] = 1; }
		System.gc();
		Process child = new ProcessBuilder("echo", "child").start();
		System.out.println(new String(child.getInputStream().readAllBytes()).trim() + child.waitFor());
		errors();
	}
}
