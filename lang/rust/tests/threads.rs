//! Threads, scopes and channels do what std's do, many more of them than virtual processors.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn threads_give_results() {
    let all: Vec<_> = (0..500usize).map(|i| kochab::spawn(move || i * 2)).collect();
    let sum: usize = all.into_iter().map(|t| t.join().unwrap()).sum();
    assert_eq!(sum, 500 * 499);
    assert!(kochab::virtual_processors() >= 1);
}

#[test]
fn panics_are_caught() {
    let t = kochab::spawn(|| {
        kochab::yield_now();
        if kochab::virtual_processors() > 0 {
            panic!("so it was meant");
        }
    });
    assert_eq!(*t.join().unwrap_err().downcast::<&str>().unwrap(), "so it was meant");
}

thread_local! {
    static OWN: Cell<usize> = const { Cell::new(0) };
}

#[test]
fn thread_locals_are_their_own() {
    let all: Vec<_> = (1..100usize)
        .map(|i| {
            kochab::spawn(move || {
                assert_eq!(OWN.get(), 0);
                OWN.set(i);
                kochab::sleep(Duration::from_millis(2));
                assert_eq!(OWN.get(), i);
            })
        })
        .collect();
    for t in all {
        t.join().unwrap();
    }
}

#[test]
fn scopes_borrow() {
    let data: Vec<usize> = (0..1000).collect();
    let count = AtomicUsize::new(0);
    let halves = kochab::scope(|s| {
        let (left, right) = data.split_at(500);
        let a = s.spawn(|| left.iter().sum::<usize>());
        let b = s.spawn(|| right.iter().sum::<usize>());
        for _ in 0..50 {
            s.spawn(|| {
                kochab::yield_now();
                count.fetch_add(1, Ordering::Relaxed);
                s.spawn(|| count.fetch_add(1, Ordering::Relaxed));
            });
        }
        a.join().unwrap() + b.join().unwrap()
    });
    assert_eq!(halves, 999 * 500);
    assert_eq!(count.load(Ordering::Relaxed), 100);
}

#[test]
#[should_panic(expected = "a scoped thread panicked")]
fn a_scope_tells_of_panics() {
    kochab::scope(|s| {
        drop(s.spawn(|| {
            kochab::sleep(Duration::from_millis(5));
            panic!("inside");
        }));
    });
}

#[test]
fn a_joined_panic_is_no_scopes() {
    let told = kochab::scope(|s| {
        let t = s.spawn(|| {
            kochab::yield_now();
            panic!("to whom it concerns");
        });
        let quick = s.spawn(|| 5);
        kochab::sleep(Duration::from_millis(5));
        assert_eq!(quick.join().unwrap(), 5);
        let r: Result<(), _> = t.join();
        r.is_err()
    });
    assert!(told);
}

#[test]
fn channels_carry_everything_once() {
    for capacity in [0, 1, 16] {
        let (sender, receiver) = kochab::channel::<Box<usize>>(capacity);
        let got = Arc::new(AtomicUsize::new(0));
        let takers: Vec<_> = (0..4)
            .map(|_| {
                let (receiver, got) = (receiver.clone(), got.clone());
                kochab::spawn(move || receiver.iter().map(|v| got.fetch_add(*v, Ordering::Relaxed)).count())
            })
            .collect();
        drop(receiver);
        let givers: Vec<_> = (0..4)
            .map(|_| {
                let sender = sender.clone();
                kochab::spawn(move || (1..=250usize).for_each(|i| sender.send(Box::new(i)).unwrap()))
            })
            .collect();
        drop(sender);
        givers.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(takers.into_iter().map(|t| t.join().unwrap()).sum::<usize>(), 1000);
        assert_eq!(got.load(Ordering::Relaxed), 4 * 250 * 251 / 2);
    }
}

#[test]
fn channels_end() {
    let kept = Arc::new(());
    let (sender, receiver) = kochab::channel(4);
    assert_eq!(receiver.try_recv(), Err(kochab::TryRecvError::Empty));
    assert_eq!(receiver.recv_timeout(Duration::from_millis(2)), Err(kochab::TryRecvError::Empty));
    sender.send(kept.clone()).unwrap();
    sender.send(kept.clone()).unwrap();
    assert!(receiver.recv().is_ok());
    drop(receiver);
    assert!(sender.send(kept.clone()).is_err());
    drop(sender);
    assert_eq!(Arc::strong_count(&kept), 1);
    let (sender, receiver) = kochab::channel::<u8>(1);
    drop(sender);
    assert_eq!(receiver.recv(), Err(kochab::RecvError));
    assert_eq!(receiver.try_recv(), Err(kochab::TryRecvError::Disconnected));
}
