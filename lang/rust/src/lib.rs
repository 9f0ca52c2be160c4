//! Lightweight threads that wait by polling: what `std::thread` and `std::sync::mpsc` do, on Kochab.
//!
//! Threads have TLS of their own and 256 KiB of stack, so panics and `thread_local!` work as usual. A thread that waits in
//! this crate lets others run on its virtual processor; one that waits in `std` (`std::sync::Mutex`, blocking I/O) takes the
//! virtual processor along. A program that uses `std` only needs no crate: `kochab run`.

mod channel;
pub mod sys;
mod thread;

pub use channel::{channel, Receiver, RecvError, SendError, Sender, TryRecvError};
pub use thread::{scope, sleep, spawn, yield_now, Builder, JoinHandle, Scope, ScopedJoinHandle};

/// So many virtual processors; starts the runtime.
pub fn virtual_processors() -> usize {
    unsafe { sys::kb_vp_count() as usize }
}
