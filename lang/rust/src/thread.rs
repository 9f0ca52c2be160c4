//! Threads, as in `std::thread`.

use crate::sys;
use std::any::Any;
use std::ffi::CString;
use std::io;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const STACK: usize = 256 * 1024;
const ENOTSUP: i32 = 95;

type Outcome<T> = Result<T, Box<dyn Any + Send + 'static>>;
type Slot<T> = Arc<Mutex<Option<Outcome<T>>>>;

extern "C" fn enter(arg: *mut c_void) -> *mut c_void {
    // SAFETY: start() made it of a box, for this thread alone
    let body = unsafe { Box::from_raw(arg as *mut Box<dyn FnOnce() + Send>) };
    body(); // catches panics itself
    ptr::null_mut()
}

/// SAFETY: what `body` borrows must outlive the thread.
unsafe fn start(options: &Builder, body: Box<dyn FnOnce() + Send>) -> io::Result<sys::kb_thread_t> {
    let mut attr = sys::kb_attr_t { opaque: [0; 8] };
    let mut thread = ptr::null_mut();
    let name = match &options.name {
        Some(name) => Some(CString::new(name.as_str()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?),
        None => None,
    };
    check(sys::kb_attr_init(&mut attr))?;
    check(sys::kb_attr_setstacksize(&mut attr, options.stack_size))?;
    check(sys::kb_attr_settls(&mut attr, sys::KB_TLS_OWN))?;
    if let Some(name) = &name {
        check(sys::kb_attr_setname(&mut attr, name.as_ptr()))?;
    }
    let arg = Box::into_raw(Box::new(body)) as *mut c_void;
    let error = sys::kb_thread_create(&mut thread, &attr, enter, arg);
    if error != 0 {
        drop(Box::from_raw(arg as *mut Box<dyn FnOnce() + Send>));
    }
    check(error).map(|()| thread)
}

fn check(error: i32) -> io::Result<()> {
    match error {
        0 => Ok(()),
        ENOTSUP => Err(io::Error::from(io::ErrorKind::Unsupported)),
        e => Err(io::Error::from_raw_os_error(e)),
    }
}

/// As `std::thread::Builder`; a name has at most 15 bytes.
pub struct Builder {
    name: Option<String>,
    stack_size: usize,
}

impl Default for Builder {
    fn default() -> Self {
        Builder { name: None, stack_size: STACK }
    }
}

impl Builder {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = bytes;
        self
    }

    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let result: Slot<T> = Arc::new(Mutex::new(None));
        let theirs = result.clone();
        let body = Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(f));
            *theirs.lock().unwrap() = Some(outcome);
        });
        // SAFETY: it borrows nothing
        let thread = unsafe { start(&self, body)? };
        Ok(JoinHandle { thread, result })
    }
}

/// Joins or, when dropped, detaches.
pub struct JoinHandle<T> {
    thread: sys::kb_thread_t,
    result: Slot<T>,
}

// SAFETY: any thread may join or detach, once
unsafe impl<T: Send> Send for JoinHandle<T> {}
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// Waits; Err is the panic's payload.
    pub fn join(mut self) -> Outcome<T> {
        let thread = std::mem::replace(&mut self.thread, ptr::null_mut());
        let error = unsafe { sys::kb_thread_join(thread, ptr::null_mut()) };
        match self.result.lock().unwrap().take() {
            Some(outcome) => outcome,
            None => Err(Box::new(format!("the thread gave no result: {}", io::Error::from_raw_os_error(error)))),
        }
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if !self.thread.is_null() {
            unsafe { sys::kb_thread_detach(self.thread) };
        }
    }
}

/// As `std::thread::spawn`; panics if there can be no thread.
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn(f).expect("no thread")
}

/// Lets the other ready threads of this virtual processor run.
pub fn yield_now() {
    unsafe { sys::kb_yield() }
}

pub fn sleep(time: Duration) {
    unsafe { sys::kb_sleep(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)) }
}

/// As `std::thread::scope`: threads may borrow what outlives the call, which waits for all of them.
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let scope = Scope {
        running: AtomicUsize::new(0),
        panicked: AtomicBool::new(false),
        threads: Mutex::new(Vec::new()),
        scope: PhantomData,
        env: PhantomData,
    };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    loop {
        // also those that threads of the scope have made meanwhile
        let threads = std::mem::take(&mut *scope.threads.lock().unwrap());
        if threads.is_empty() {
            break;
        }
        for Raw(thread) in threads {
            unsafe { sys::kb_thread_join(thread, ptr::null_mut()) };
        }
    }
    debug_assert_eq!(scope.running.load(Ordering::Acquire), 0);
    match result {
        Err(panic) => resume_unwind(panic),
        Ok(_) if scope.panicked.load(Ordering::Relaxed) => panic!("a scoped thread panicked"),
        Ok(value) => value,
    }
}

struct Raw(sys::kb_thread_t);
// SAFETY: a handle
unsafe impl Send for Raw {}

pub struct Scope<'scope, 'env: 'scope> {
    running: AtomicUsize,
    panicked: AtomicBool,
    threads: Mutex<Vec<Raw>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let (sender, ended) = crate::channel::<()>(1);
        let packet = Arc::new(Packet { outcome: Mutex::new(None), panicked: &self.panicked });
        let theirs = packet.clone();
        self.running.fetch_add(1, Ordering::Relaxed);
        let body: Box<dyn FnOnce() + Send + 'scope> = Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(f));
            *theirs.outcome.lock().unwrap() = Some(outcome);
            drop(theirs);
            self.running.fetch_sub(1, Ordering::Release);
            let _ = sender.send(()); // nobody may want to know
        });
        // SAFETY: scope() joins the thread before anything that it borrows can go
        let body: Box<dyn FnOnce() + Send + 'static> = unsafe { std::mem::transmute(body) };
        let thread = unsafe { start(&Builder::new(), body).expect("no thread") };
        self.threads.lock().unwrap().push(Raw(thread));
        ScopedJoinHandle { ended, packet }
    }
}

struct Packet<'scope, T> {
    outcome: Mutex<Option<Outcome<T>>>,
    panicked: &'scope AtomicBool,
}

impl<T> Drop for Packet<'_, T> {
    /// A panic that nobody has been told is the scope's.
    fn drop(&mut self) {
        if let Ok(Some(Err(_))) = self.outcome.get_mut() {
            self.panicked.store(true, Ordering::Relaxed);
        }
    }
}

pub struct ScopedJoinHandle<'scope, T> {
    ended: crate::Receiver<()>,
    packet: Arc<Packet<'scope, T>>,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits; Err is the panic's payload.
    pub fn join(self) -> Outcome<T> {
        self.ended.recv().expect("each thread says that it has ended");
        self.packet.outcome.lock().unwrap().take().expect("and leaves its outcome")
    }
}
