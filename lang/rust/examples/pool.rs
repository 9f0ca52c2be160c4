//! A pool of workers on lightweight threads: numbers go out by a channel, how many divide them comes back by another.
//! Run: LIBKOCHAB_DIR=DIR LD_LIBRARY_PATH=DIR cargo run --release --example pool

use kochab::{channel, scope};

const WORKERS: usize = 100;
const LAST: u32 = 2000;

fn divisors(n: u32) -> usize {
    (1..=n).filter(|d| n % d == 0).count()
}

fn main() {
    let (jobs, todo) = channel::<u32>(64);
    let (answers, done) = channel::<usize>(64);
    let sum: usize = scope(|s| {
        for _ in 0..WORKERS {
            let (todo, answers) = (todo.clone(), answers.clone());
            s.spawn(move || {
                while let Ok(n) = todo.recv() {
                    answers.send(divisors(n)).expect("main takes all answers");
                }
            });
        }
        drop(answers);
        s.spawn(move || (1..=LAST).for_each(|n| jobs.send(n).expect("there are workers")));
        std::iter::from_fn(|| done.recv().ok()).sum()
    });
    let expected: u32 = (1..=LAST).map(|d| LAST / d).sum();
    println!("{WORKERS} workers, numbers to {LAST}: {sum} divisors");
    assert_eq!(sum, expected as usize);
}
