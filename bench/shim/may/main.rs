// bench/shim/may/main.rs - Rust's stackful coroutines, may: a channel per seat of the ring.
use may::coroutine::{self, yield_now};
use may::sync::{mpsc, Mutex};
use std::sync::Arc;
use std::time::Instant;

const STOP: u64 = 1 << 63;

macro_rules! spawn {
    ($e:expr) => {
        unsafe { coroutine::spawn($e) }
    };
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

fn scale(seconds: f64, mut once: impl FnMut(u64)) -> f64 {
    let mut n = 1;
    once(1); // warms up
    loop {
        let start = Instant::now();
        once(n);
        let took = start.elapsed().as_secs_f64();
        if took >= 0.4 * seconds {
            return took / n as f64;
        }
        n *= 4;
    }
}

fn lead(n: u64, seconds: f64, own: mpsc::Receiver<u64>, next: mpsc::Sender<u64>) {
    let mut hop = 0;
    let s = scale(seconds, |rounds| {
        for _ in 0..rounds {
            next.send(hop + 1).unwrap();
            check(own.recv().unwrap() == hop + n, "message");
            hop += n;
        }
    });
    report("one-way", s / n as f64);
    next.send(STOP).unwrap();
}

fn follow(n: u64, i: u64, own: mpsc::Receiver<u64>, next: mpsc::Sender<u64>) {
    let mut want = i;
    loop {
        let got = own.recv().unwrap();
        if got == STOP {
            break;
        }
        check(got == want, "message");
        want += n;
        next.send(got + 1).unwrap();
    }
    let _ = next.send(STOP);
}

fn rendezvous(n: u64, seconds: f64) {
    let (mut to, own): (Vec<_>, Vec<_>) = (0..n).map(|_| mpsc::channel()).unzip();
    to.rotate_left(1);
    let crew: Vec<_> = (0..n)
        .zip(to.into_iter().zip(own))
        .map(|(i, (next, own))| {
            spawn!(move || if i == 0 { lead(n, seconds, own, next) } else { follow(n, i, own, next) })
        })
        .collect();
    for t in crew {
        t.join().unwrap();
    }
}

fn plain(n: u64) -> u64 {
    if n < 2 { n } else { plain(n - 1) + plain(n - 2) }
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let a = spawn!(move || fib(n - 1));
    let b = fib(n - 2);
    a.join().unwrap() + b
}

fn crew<F: FnOnce() + Send + 'static>(n: u64, main: impl Fn() -> F) {
    let crew: Vec<_> = (0..n).map(|_| spawn!(main())).collect();
    for t in crew {
        t.join().unwrap();
    }
}

fn ask(question: &str, threads: u64, seconds: f64) {
    let parts = threads as f64;
    match question {
        "rendezvous" => rendezvous(threads, seconds),
        "yield" => {
            let once = |k| crew(threads, || move || (0..k).for_each(|_| yield_now()));
            report("yield", scale(seconds, once) / parts)
        }
        "spawn" => {
            let once = |n| (0..n).for_each(|_| crew(threads, || || ()));
            report("create+join", scale(seconds, once) / parts)
        }
        "mutex" => {
            let once = |k| {
                let m = Arc::new(Mutex::new(0));
                let lock = || {
                    let m = m.clone();
                    move || (0..k).for_each(|_| *m.lock().unwrap() += 1)
                };
                crew(threads, lock);
                check(*m.lock().unwrap() == k * threads, "count");
            };
            report("lock+unlock", scale(seconds, once) / parts)
        }
        "forkjoin" => {
            let n = (2..).find(|n| plain(n + 1) - 1 >= threads).unwrap();
            let once = |k| (0..k).for_each(|_| check(fib(n) == plain(n), "fib"));
            report("thread", scale(seconds, once) / (plain(n + 1) - 1) as f64)
        }
        _ => std::process::exit(77),
    }
}

fn main() {
    let arg: Vec<String> = std::env::args().collect();
    let (threads, vps, seconds) = (arg[2].parse().unwrap(), arg[3].parse().unwrap(), arg[4].parse().unwrap());
    may::config().set_workers(vps).set_stack_size(0x1000);
    let question = arg[1].clone();
    spawn!(move || ask(&question, threads, seconds)).join().unwrap();
}
