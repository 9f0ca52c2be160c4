// ring THREADS SECONDS: a number goes around a ring of threads, each with a channel of the standard library. Each adds 1.
// Prints the hops and the nanoseconds that they took.
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

fn hand_on(mine: Receiver<i64>, following: Sender<i64>, first: bool, end: Instant) -> i64 {
    let mut hops = 0;
    loop {
        let number = mine.recv().unwrap();
        if number < 0 {
            let _ = following.send(number);
            return hops;
        }
        hops += 1;
        let next = if first && Instant::now() > end { -1 } else { number + 1 };
        following.send(next).unwrap();
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let n: usize = args[1].parse().unwrap();
    let end = Instant::now() + Duration::from_secs_f64(args[2].parse().unwrap());
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..n).map(|_| channel()).unzip();
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(i, mine)| {
            let following = senders[(i + 1) % n].clone();
            thread::spawn(move || hand_on(mine, following, i == 0, end))
        })
        .collect();
    let began = Instant::now();
    senders[0].send(0).unwrap();
    let counts: Vec<i64> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    let took = began.elapsed().as_nanos();
    assert!(counts[1..].iter().all(|&c| c == counts[0] - 1), "{counts:?}");
    println!("{} {}", counts.iter().sum::<i64>(), took);
}
