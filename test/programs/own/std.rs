// Rust's standard library: threads, channels (bounded and not), Mutex and Condvar, RwLock, Barrier, Once, park and
// scoped threads; it waits by futex system calls of its own. Prints the same numbers whatever runs its threads.
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock};
use std::thread;
use std::time::Duration;

const THREADS: u64 = 32;

fn channels() -> u64 {
    let (tx, rx) = channel();
    let (slow, last) = sync_channel(2);
    let senders: Vec<_> = (0..THREADS)
        .map(|i| {
            let tx = tx.clone();
            thread::spawn(move || (0..200).for_each(|k| tx.send(i * 200 + k).unwrap()))
        })
        .collect();
    drop(tx);
    let relay = thread::spawn(move || rx.iter().for_each(|v| slow.send(v).unwrap()));
    let sum = last.iter().sum();
    senders.into_iter().for_each(|t| t.join().unwrap());
    relay.join().unwrap();
    sum
}

fn ring() -> u64 {
    let state = Arc::new((Mutex::new(0u64), Condvar::new()));
    let crowd: Vec<_> = (0..THREADS)
        .map(|me| {
            let state = state.clone();
            thread::spawn(move || {
                for _ in 0..20 {
                    let mut turn = state.1.wait_while(state.0.lock().unwrap(), |t| *t % THREADS != me).unwrap();
                    *turn += 1;
                    state.1.notify_all();
                }
            })
        })
        .collect();
    crowd.into_iter().for_each(|t| t.join().unwrap());
    let turns = *state.0.lock().unwrap();
    turns
}

fn readers_and_writers() -> u64 {
    let pair = RwLock::new((0u64, 0u64));
    let (torn, first, begun) = (AtomicU64::new(0), Once::new(), AtomicU64::new(0));
    let meet = Barrier::new(THREADS as usize);
    thread::scope(|s| {
        for i in 0..THREADS {
            let (pair, torn, first, begun, meet) = (&pair, &torn, &first, &begun, &meet);
            s.spawn(move || {
                meet.wait();
                first.call_once(|| {
                    thread::sleep(Duration::from_millis(2));
                    begun.fetch_add(1, SeqCst);
                });
                for _ in 0..50 {
                    if i % 4 == 0 {
                        let mut p = pair.write().unwrap();
                        p.0 += 1;
                        thread::yield_now();
                        p.1 += 1;
                    } else {
                        let p = pair.read().unwrap();
                        torn.fetch_add((p.0 != p.1) as u64, SeqCst);
                    }
                }
            });
        }
    });
    let sum = pair.read().unwrap().0;
    sum + 1000 * begun.load(SeqCst) + 1000000 * torn.load(SeqCst)
}

fn parked() -> u64 {
    let flag = Arc::new(AtomicU64::new(0));
    let crowd: Vec<_> = (0..THREADS)
        .map(|_| {
            let flag = flag.clone();
            thread::spawn(move || {
                while flag.load(SeqCst) == 0 {
                    thread::park_timeout(Duration::from_secs(60));
                }
                flag.fetch_add(1, SeqCst);
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(5));
    flag.store(1, SeqCst);
    crowd.iter().for_each(|t| t.thread().unpark());
    crowd.into_iter().for_each(|t| t.join().unwrap());
    flag.load(SeqCst)
}

fn main() {
    println!("channels {} ring {} rwlock {} parked {}", channels(), ring(), readers_and_writers(), parked());
}
