//! The C interface as it is, as far as the safe one uses it: kochab/kochab.h and kochab/sync.h.

#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_uint, c_void};

#[repr(C)]
pub struct kb_thread {
    _private: [u8; 0],
}
pub type kb_thread_t = *mut kb_thread;

#[repr(C)]
pub struct kb_attr_t {
    pub opaque: [u64; 8],
}

#[repr(C)]
pub struct kb_chan_t {
    _private: [u8; 0],
}

pub const KB_TLS_LIGHT: c_int = 0;
pub const KB_TLS_OWN: c_int = 1;
pub const KB_FOREVER: u64 = u64::MAX;

extern "C" {
    pub fn kb_init() -> c_int;
    pub fn kb_version() -> *const c_char;
    pub fn kb_vp_count() -> c_uint;
    pub fn kb_now() -> u64;
    pub fn kb_attr_init(attr: *mut kb_attr_t) -> c_int;
    pub fn kb_attr_setstacksize(attr: *mut kb_attr_t, bytes: usize) -> c_int;
    pub fn kb_attr_settls(attr: *mut kb_attr_t, tls: c_int) -> c_int;
    pub fn kb_attr_setname(attr: *mut kb_attr_t, name: *const c_char) -> c_int;
    pub fn kb_thread_create(
        thread: *mut kb_thread_t,
        attr: *const kb_attr_t,
        run: extern "C" fn(*mut c_void) -> *mut c_void,
        arg: *mut c_void,
    ) -> c_int;
    pub fn kb_thread_join(thread: kb_thread_t, result: *mut *mut c_void) -> c_int;
    pub fn kb_thread_detach(thread: kb_thread_t) -> c_int;
    pub fn kb_yield();
    pub fn kb_sleep(ns: u64);
    pub fn kb_chan_create(chan: *mut *mut kb_chan_t, element_size: usize, capacity: usize) -> c_int;
    pub fn kb_chan_destroy(chan: *mut kb_chan_t);
    pub fn kb_chan_close(chan: *mut kb_chan_t) -> c_int;
    pub fn kb_chan_send(chan: *mut kb_chan_t, element: *const c_void) -> c_int;
    pub fn kb_chan_recv(chan: *mut kb_chan_t, element: *mut c_void) -> c_int;
    pub fn kb_chan_trysend(chan: *mut kb_chan_t, element: *const c_void) -> c_int;
    pub fn kb_chan_tryrecv(chan: *mut kb_chan_t, element: *mut c_void) -> c_int;
    pub fn kb_chan_timedrecv(chan: *mut kb_chan_t, element: *mut c_void, deadline: u64) -> c_int;
}
