// bench/shim/java/Shim.java - Java's virtual threads: a queue of one message per seat of the ring, ReentrantLock.
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.locks.ReentrantLock;

public class Shim {
	static final long STOP = Long.MIN_VALUE;
	static int threads;
	static double seconds;
	static long count;

	interface Seat { void sit(int i) throws Exception; }
	interface Once { void run(long n) throws Exception; }

	static void report(String metric, double s) {
		System.out.println("{\"metric\": \"" + metric + "\", \"unit\": \"ns\", \"value\": " + s * 1e9 + "}");
	}

	static void check(boolean right, String what) {
		if (right)
			return;
		System.err.println("shim: wrong " + what);
		Runtime.getRuntime().halt(1);
	}

	// Seconds for one, when n of them take long enough; three short ones before, for the compiler.
	static double scale(Once once) throws Exception {
		for (long n = 1, warm = 0;;) {
			long start = System.nanoTime();
			once.run(n);
			double took = (System.nanoTime() - start) * 1e-9;
			if (took < 0.4 * seconds)
				n *= 4;
			else if (++warm > 3)
				return took / n;
		}
	}

	static Thread start(int i, Seat main) {
		return Thread.startVirtualThread(() -> {
			try {
				main.sit(i);
			} catch (Exception e) {
				check(false, e.toString());
			}
		});
	}

	static void crew(Seat main) throws Exception {
		Thread[] all = new Thread[threads];
		for (int i = 0; i < threads; i++)
			all[i] = start(i, main);
		for (Thread t : all)
			t.join();
	}

	static void seat(ArrayBlockingQueue<Long>[] box, int i) throws Exception {
		ArrayBlockingQueue<Long> next = box[(i + 1) % threads];
		long[] hop = { i };
		if (i == 0) {
			hop[0] = 0;
			report("one-way", scale(rounds -> {
				for (; rounds > 0; rounds--) {
					next.put(hop[0] + 1);
					check(box[0].take() == (hop[0] += threads), "message");
				}
			}) / threads);
			next.put(STOP);
			return;
		}
		for (long want = i;; want += threads) {
			long got = box[i].take();
			if (got == STOP)
				break;
			check(got == want, "message");
			next.put(got + 1);
		}
		if (i + 1 < threads)
			next.put(STOP);
	}

	@SuppressWarnings("unchecked")
	static void ring() throws Exception {
		ArrayBlockingQueue<Long>[] box = new ArrayBlockingQueue[threads];
		for (int i = 0; i < threads; i++)
			box[i] = new ArrayBlockingQueue<>(1);
		crew(i -> seat(box, i));
	}

	static int plain(int n) { return n < 2 ? n : plain(n - 1) + plain(n - 2); }

	static int fib(int n) throws Exception {
		if (n < 2)
			return n;
		int[] a = { 0 };
		Thread t = start(n, m -> a[0] = fib(m - 1));
		int b = fib(n - 2);
		t.join();
		return a[0] + b;
	}

	static void mutex(ReentrantLock lock) throws Exception {
		report("lock+unlock", scale(n -> {
			count = 0;
			crew(i -> {
				for (long k = n; k > 0; k--) {
					lock.lock();
					count++;
					lock.unlock();
				}
			});
			check(count == n * threads, "count");
		}) / threads);
	}

	static void forkjoin() throws Exception {
		int n = 2;
		while (plain(n + 1) - 1 < threads)
			n++;
		int size = n, right = plain(n);
		report("thread", scale(rounds -> {
			for (; rounds > 0; rounds--)
				check(fib(size) == right, "fib");
		}) / (plain(n + 1) - 1));
	}

	static void ask(String question) throws Exception {
		switch (question) {
		case "rendezvous" -> ring();
		case "yield" -> report("yield", scale(n -> crew(i -> {
			for (long k = n; k > 0; k--)
				Thread.yield();
		})) / threads);
		case "spawn" -> report("create+join", scale(n -> {
			for (; n > 0; n--)
				crew(i -> {});
		}) / threads);
		case "forkjoin" -> forkjoin();
		case "mutex" -> mutex(new ReentrantLock());
		default -> Runtime.getRuntime().halt(77);
		}
	}

	public static void main(String[] args) throws Exception {
		threads = Integer.parseInt(args[1]);
		seconds = Double.parseDouble(args[3]);
		start(0, i -> ask(args[0])).join();
		System.exit(0);
	}
}
