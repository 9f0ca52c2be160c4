// bench/shim/tokio/main.rs - Rust tasks on tokio: a Notify and an atomic message per seat of the ring. One
// processor: its current-thread runtime, which is its faster one.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{Mutex, Notify};
use tokio::task::{spawn, yield_now};

const STOP: u64 = 1 << 63;

#[repr(align(64))]
struct Seat {
    notify: Notify,
    message: AtomicU64,
}

impl Seat {
    fn send(&self, m: u64) {
        self.message.store(m, Release);
        self.notify.notify_one();
    }
    async fn receive(&self) -> u64 {
        self.notify.notified().await;
        self.message.load(Acquire)
    }
}

fn report(metric: &str, s: f64) {
    println!("{{\"metric\": \"{}\", \"unit\": \"ns\", \"value\": {}}}", metric, s * 1e9);
}

fn check(right: bool, what: &str) {
    if !right {
        eprintln!("shim: wrong {}", what);
        std::process::exit(1);
    }
}

async fn lead(ring: Arc<Vec<Seat>>, seconds: f64) {
    let (n, mut hop, mut rounds) = (ring.len() as u64, 0, 1);
    loop {
        let start = Instant::now();
        for _ in 0..rounds {
            ring[1].send(hop + 1);
            check(ring[0].receive().await == hop + n, "message");
            hop += n;
        }
        let took = start.elapsed().as_secs_f64();
        if took >= 0.4 * seconds {
            report("one-way", took / (rounds * n) as f64);
            break ring[1].send(STOP);
        }
        rounds *= 4;
    }
}

async fn follow(ring: Arc<Vec<Seat>>, i: usize) {
    let next = (i + 1) % ring.len();
    let mut want = i as u64;
    loop {
        let got = ring[i].receive().await;
        if got == STOP {
            break;
        }
        check(got == want, "message");
        want += ring.len() as u64;
        ring[next].send(got + 1);
    }
    if next > 0 {
        ring[next].send(STOP);
    }
}

async fn rendezvous(n: usize, seconds: f64) {
    let seat = |_| Seat { notify: Notify::new(), message: AtomicU64::new(0) };
    let ring = Arc::new((0..n).map(seat).collect::<Vec<_>>());
    let mut crew: Vec<_> = (1..n).map(|i| spawn(follow(ring.clone(), i))).collect();
    crew.push(spawn(lead(ring.clone(), seconds)));
    for t in crew {
        t.await.unwrap();
    }
}

fn plain(n: u64) -> u64 {
    if n < 2 { n } else { plain(n - 1) + plain(n - 2) }
}

fn fib(n: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if n < 2 {
            return n;
        }
        let a = spawn(fib(n - 1));
        let b = fib(n - 2).await;
        a.await.unwrap() + b
    })
}

async fn yields(k: u64) {
    for _ in 0..k {
        yield_now().await;
    }
}

async fn locks(m: Arc<Mutex<u64>>, k: u64) {
    for _ in 0..k {
        *m.lock().await += 1;
    }
}

async fn crew<F: Future<Output = ()> + Send + 'static>(n: usize, main: impl Fn() -> F) {
    let crew: Vec<_> = (0..n).map(|_| spawn(main())).collect();
    for t in crew {
        t.await.unwrap();
    }
}

async fn once(question: &str, threads: usize, n: u64, fib_n: u64) {
    match question {
        "yield" => crew(threads, || yields(n)).await,
        "mutex" => {
            let m = Arc::new(Mutex::new(0));
            crew(threads, || locks(m.clone(), n)).await;
            check(*m.lock().await == n * threads as u64, "count");
        }
        "spawn" => {
            for _ in 0..n {
                crew(threads, || async {}).await
            }
        }
        _ => {
            for _ in 0..n {
                check(spawn(fib(fib_n)).await.unwrap() == plain(fib_n), "fib")
            }
        }
    }
}

async fn talk(mut s: UnixStream, rounds: u64, first: bool) -> UnixStream {
    for i in 0..rounds {
        if first {
            s.write_all(&i.to_le_bytes()).await.unwrap();
        }
        let mut b = [0; 8];
        s.read_exact(&mut b).await.unwrap();
        let got = u64::from_le_bytes(b);
        check(got == if first { i + 1 } else { i }, "message");
        if !first {
            s.write_all(&(i + 1).to_le_bytes()).await.unwrap();
        }
    }
    s
}

async fn socket(threads: usize, seconds: f64) {
    let mut ends: Vec<UnixStream> = Vec::new();
    for _ in 0..(threads + 1) / 2 {
        let (a, b) = UnixStream::pair().unwrap();
        ends.extend([a, b]);
    }
    let (n, mut rounds) = (ends.len() as f64, 1);
    loop {
        let start = Instant::now();
        let crew: Vec<_> = ends.drain(..).enumerate().map(|(i, s)| spawn(talk(s, rounds, i % 2 == 0))).collect();
        for t in crew {
            ends.push(t.await.unwrap());
        }
        let took = start.elapsed().as_secs_f64();
        if took >= 0.4 * seconds && rounds > 1 {
            return report("one-way", took / rounds as f64 / n);
        }
        rounds *= 4;
    }
}

async fn ask(question: String, threads: usize, seconds: f64) {
    let fib_n = (2..).find(|n| plain(n + 1) - 1 >= threads as u64).unwrap();
    let (metric, parts) = match question.as_str() {
        "rendezvous" => return rendezvous(threads, seconds).await,
        "socket" => return socket(threads, seconds).await,
        "yield" => ("yield", threads as u64),
        "mutex" => ("lock+unlock", threads as u64),
        "spawn" => ("create+join", threads as u64),
        "forkjoin" => ("thread", plain(fib_n + 1) - 1),
        _ => std::process::exit(77),
    };
    let mut n = 1;
    once(&question, threads, 1, fib_n).await; // warms up
    loop {
        let start = Instant::now();
        once(&question, threads, n, fib_n).await;
        let took = start.elapsed().as_secs_f64();
        if took >= 0.4 * seconds {
            return report(metric, took / n as f64 / parts as f64);
        }
        n *= 4;
    }
}

fn main() {
    let arg: Vec<String> = std::env::args().collect();
    let (threads, vps, seconds) = (arg[2].parse().unwrap(), arg[3].parse().unwrap(), arg[4].parse().unwrap());
    let rt = match vps {
        1 => tokio::runtime::Builder::new_current_thread().enable_io().build(),
        _ => tokio::runtime::Builder::new_multi_thread().worker_threads(vps).enable_io().build(),
    }
    .unwrap();
    rt.block_on(async { spawn(ask(arg[1].clone(), threads, seconds)).await.unwrap() });
}
