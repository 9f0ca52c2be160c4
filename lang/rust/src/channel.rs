//! Bounded channels, many to many, first come, first served. Capacity 0: sender and receiver meet.

use crate::sys;
use std::fmt;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Its value comes back: there is no receiver any more.
#[derive(Debug, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// There is no value and no sender any more.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct RecvError;

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum TryRecvError {
    Empty,
    Disconnected,
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sending on a channel without receivers")
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("receiving on an empty channel without senders")
    }
}

impl<T: fmt::Debug> std::error::Error for SendError<T> {}
impl std::error::Error for RecvError {}

/// Carries pointers to boxes.
struct Shared<T> {
    chan: *mut sys::kb_chan_t,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    values: PhantomData<T>,
}

// SAFETY: the channel is a lock of its own; values go from thread to thread
unsafe impl<T: Send> Send for Shared<T> {}
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn receive(&self, call: impl FnOnce(*mut c_void) -> i32) -> Result<T, i32> {
        let mut value: *mut T = ptr::null_mut();
        match call(&mut value as *mut *mut T as *mut c_void) {
            // SAFETY: send() made it of a box, and the channel gives it to one receiver
            0 => Ok(*unsafe { Box::from_raw(value) }),
            error => Err(error),
        }
    }

    fn drain(&self) {
        while self.receive(|to| unsafe { sys::kb_chan_tryrecv(self.chan, to) }).is_ok() {}
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        self.drain();
        unsafe { sys::kb_chan_destroy(self.chan) };
    }
}

pub struct Sender<T>(Arc<Shared<T>>);
pub struct Receiver<T>(Arc<Shared<T>>);

/// Panics if there is no memory.
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let mut chan = ptr::null_mut();
    let error = unsafe { sys::kb_chan_create(&mut chan, std::mem::size_of::<*mut T>(), capacity) };
    assert_eq!(error, 0, "kb_chan_create");
    let shared = Arc::new(Shared {
        chan,
        senders: AtomicUsize::new(1),
        receivers: AtomicUsize::new(1),
        values: PhantomData,
    });
    (Sender(shared.clone()), Receiver(shared))
}

impl<T> Sender<T> {
    /// Waits while the channel is full.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        let boxed = Box::into_raw(Box::new(value));
        let error = unsafe { sys::kb_chan_send(self.0.chan, &boxed as *const *mut T as *const c_void) };
        match error {
            0 => Ok(()),
            // SAFETY: nobody has got it
            _ => Err(SendError(*unsafe { Box::from_raw(boxed) })),
        }
    }
}

impl<T> Receiver<T> {
    /// Waits for a value.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.0.receive(|to| unsafe { sys::kb_chan_recv(self.0.chan, to) }).map_err(|_| RecvError)
    }

    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        const EAGAIN: i32 = 11;
        self.0.receive(|to| unsafe { sys::kb_chan_tryrecv(self.0.chan, to) }).map_err(|e| match e {
            EAGAIN => TryRecvError::Empty,
            _ => TryRecvError::Disconnected,
        })
    }

    /// Empty: the time is over.
    pub fn recv_timeout(&self, time: Duration) -> Result<T, TryRecvError> {
        const ETIMEDOUT: i32 = 110;
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let until = unsafe { sys::kb_now() }.saturating_add(ns);
        self.0.receive(|to| unsafe { sys::kb_chan_timedrecv(self.0.chan, to, until) }).map_err(|e| match e {
            ETIMEDOUT => TryRecvError::Empty,
            _ => TryRecvError::Disconnected,
        })
    }

    /// All values until no sender is left.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        std::iter::from_fn(move || self.recv().ok())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        Sender(self.0.clone())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.0.receivers.fetch_add(1, Ordering::Relaxed);
        Receiver(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            unsafe { sys::kb_chan_close(self.0.chan) };
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if self.0.receivers.fetch_sub(1, Ordering::AcqRel) == 1 {
            unsafe { sys::kb_chan_close(self.0.chan) };
            self.0.drain(); // what nobody will take is dropped now
        }
    }
}
