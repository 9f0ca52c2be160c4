// bench/shim/iceoryx2/main.rs - two programs on iceoryx2: a pair is a service there and one back, with a publisher and a
// subscriber each. It has no threads of its own that wait, so in each program one kernel thread asks the subscribers in
// turn: what a program of many pairs would do, and the fastest it can. Both poll.
use iceoryx2::port::{publisher::Publisher, subscriber::Subscriber};
use iceoryx2::prelude::*;
use std::io::{BufRead, BufReader, Write};
use std::process::{exit, Child, Command, Stdio};
use std::time::Instant;

const STOP: u64 = 1 << 63;

type Error = Box<dyn std::error::Error>;

struct Seat {
    out: Publisher<ipc::Service, u64, ()>,
    r#in: Subscriber<ipc::Service, u64, ()>,
}

impl Seat {
    fn send(&self, m: u64) -> Result<(), Error> {
        self.out.send_copy(m)?;
        Ok(())
    }
    fn receive(&self) -> Result<Option<u64>, Error> {
        Ok(self.r#in.receive()?.map(|sample| *sample))
    }
}

fn open(node: &Node<ipc::Service>, name: &str, pairs: u64, first: bool) -> Result<Vec<Seat>, Error> {
    let service = |what: &str, i: u64| -> Result<_, Error> {
        Ok(node
            .service_builder(&format!("{name}/{what}/{i}").as_str().try_into()?)
            .publish_subscribe::<u64>()
            .max_publishers(1)
            .max_subscribers(1)
            .open_or_create()?)
    };
    (0..pairs)
        .map(|i| {
            let (out, back) = if first { ("to", "back") } else { ("back", "to") };
            Ok(Seat {
                out: service(out, i)?.publisher_builder().create()?,
                r#in: service(back, i)?.subscriber_builder().create()?,
            })
        })
        .collect()
}

fn pin(which: usize) {
    unsafe {
        let mut may: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of_val(&may), &mut may) != 0 {
            return;
        }
        let cpus: Vec<usize> = (0..1024).filter(|&c| libc::CPU_ISSET(c, &may)).collect();
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpus[which % cpus.len()], &mut one);
        libc::sched_setaffinity(0, size_of_val(&one), &one);
    }
}

/* Every pair so many rounds; seconds. */
fn lap(seats: &[Seat], rounds: u64) -> Result<f64, Error> {
    let start = Instant::now();
    let mut at = vec![1; seats.len()];
    let mut left = seats.len();
    for s in seats {
        s.send(1)?;
    }
    while left > 0 {
        for (i, s) in seats.iter().enumerate() {
            let Some(m) = s.receive()? else { continue };
            if m != at[i] {
                eprintln!("shim: wrong message");
                exit(1);
            }
            at[i] += 1;
            if at[i] <= rounds {
                s.send(at[i])?;
            } else {
                left -= 1;
            }
        }
    }
    Ok(start.elapsed().as_secs_f64())
}

fn answer(seats: &[Seat]) -> Result<(), Error> {
    loop {
        for s in seats {
            match s.receive()? {
                Some(STOP) => return Ok(()),
                Some(m) => s.send(m)?,
                None => {}
            }
        }
    }
}

fn second(name: &str, pairs: u64) -> Child {
    let me = std::env::current_exe().expect("this program's path");
    Command::new(me)
        .args(["second", name, &pairs.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a second program")
}

fn run(args: &[String]) -> Result<(), Error> {
    set_log_level(LogLevel::Fatal);
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    if args[1] == "second" {
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        pin(1);
        let seats = open(&node, &args[2], args[3].parse()?, false)?;
        println!("ready");
        std::io::stdout().flush()?;
        return answer(&seats);
    }
    let (pairs, seconds) = (args[2].parse::<u64>()? / 2, args[4].parse::<f64>()?);
    let name = format!("kochab-bench-{}", std::process::id());
    let seats = open(&node, &name, pairs, true)?;
    let mut child = second(&name, pairs);
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line)?;
    if line != "ready\n" {
        exit(77);
    }
    pin(0);
    lap(&seats, 1)?;
    let mut rounds = 1;
    loop {
        let took = lap(&seats, rounds)?;
        if took >= 0.4 * seconds {
            let ns = took / (2 * rounds * pairs) as f64 * 1e9;
            println!("{{\"metric\": \"one-way\", \"unit\": \"ns\", \"value\": {ns}}}");
            break;
        }
        rounds *= 4;
    }
    seats[0].send(STOP)?;
    child.wait()?;
    Ok(())
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() < 4 || !(args[1] == "rendezvous-ipc" && args.len() == 5 && args[3] == "2" || args[1] == "second") {
        exit(77);
    }
    if let Err(e) = run(&args) {
        eprintln!("shim: {e}");
        exit(77); // too many services for this machine, no shared memory
    }
}
