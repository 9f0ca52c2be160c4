import java.util.concurrent.LinkedBlockingQueue;

/** Ring THREADS SECONDS: a number goes around a ring of threads, each with a LinkedBlockingQueue. Each adds 1. */
public class Ring {
	public static void main(String[] args) throws Exception {
		int n = Integer.parseInt(args[0]);
		long length = (long) (Double.parseDouble(args[1]) * 1e9);
		@SuppressWarnings("unchecked")
		LinkedBlockingQueue<Long>[] queue = new LinkedBlockingQueue[n];
		long[] count = new long[n];
		Thread[] thread = new Thread[n];

		for (int i = 0; i < n; i++)
			queue[i] = new LinkedBlockingQueue<>();
		long end = System.nanoTime() + length;
		for (int i = 0; i < n; i++) {
			int at = i;
			thread[i] = new Thread(() -> handOn(queue[at], queue[(at + 1) % n], count, at, end));
			thread[i].start();
		}
		long began = System.nanoTime();
		queue[0].put(0L);
		for (Thread t : thread)
			t.join();
		long took = System.nanoTime() - began, hops = count[0];
		for (int i = 1; i < n; i++) {
			hops += count[i];
			if (count[i] != count[0] - 1)
				throw new AssertionError("thread " + i + " has seen " + count[i] + " numbers, thread 0 " + count[0]);
		}
		System.out.println(hops + " " + took);
	}

	private static void handOn(LinkedBlockingQueue<Long> mine, LinkedBlockingQueue<Long> following, long[] count,
			int at, long end) {
		long hops = 0;

		try {
			for (;;) {
				long number = mine.take();
				if (number < 0) {
					following.put(number);
					break;
				}
				hops++;
				following.put(at == 0 && System.nanoTime() > end ? -1L : number + 1);
			}
		} catch (InterruptedException e) {
			throw new AssertionError(e);
		}
		count[at] = hops;
	}
}
