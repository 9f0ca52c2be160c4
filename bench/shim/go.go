// bench/shim/go.go - Go: a channel of one message per seat of the ring; sync.Mutex, sync.WaitGroup.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const stop = uint64(1) << 63

var threads int
var seconds float64

func report(metric string, s float64) {
	fmt.Printf("{\"metric\": \"%s\", \"unit\": \"ns\", \"value\": %g}\n", metric, s*1e9)
}

func check(right bool, what string) {
	if !right {
		fmt.Fprintln(os.Stderr, "shim: wrong", what)
		os.Exit(1)
	}
}

func scale(once func(n uint64)) float64 {
	once(1) // warms up
	for n := uint64(1); ; n *= 4 {
		start := time.Now()
		once(n)
		if took := time.Since(start).Seconds(); took >= 0.4*seconds {
			return took / float64(n)
		}
	}
}

func crew(main func(i int)) {
	var all sync.WaitGroup
	all.Add(threads)
	for i := 0; i < threads; i++ {
		go func() { main(i); all.Done() }()
	}
	all.Wait()
}

func seat(box []chan uint64, i int) {
	next := box[(i+1)%threads]
	n := uint64(threads)
	if i > 0 {
		for want := uint64(i); ; want += n {
			got := <-box[i]
			if got == stop {
				break
			}
			check(got == want, "message")
			next <- got + 1
		}
		if i+1 < threads {
			next <- stop
		}
		return
	}
	hop := uint64(0)
	report("one-way", scale(func(rounds uint64) {
		for ; rounds > 0; rounds-- {
			next <- hop + 1
			check(<-box[0] == hop+n, "message")
			hop += n
		}
	})/float64(threads))
	next <- stop
}

func rendezvous() {
	box := make([]chan uint64, threads)
	for i := range box {
		box[i] = make(chan uint64, 1)
	}
	crew(func(i int) { seat(box, i) })
}

func plain(n int) int {
	if n < 2 {
		return n
	}
	return plain(n-1) + plain(n-2)
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	a := make(chan int, 1)
	go func() { a <- fib(n - 1) }()
	b := fib(n - 2)
	return <-a + b
}

func forkjoin() {
	n := 2
	for plain(n+1)-1 < threads {
		n++
	}
	right := plain(n)
	report("thread", scale(func(rounds uint64) {
		for ; rounds > 0; rounds-- {
			check(fib(n) == right, "fib")
		}
	})/float64(plain(n+1)-1))
}

func mutex() {
	var m sync.Mutex
	report("lock+unlock", scale(func(n uint64) {
		count := uint64(0)
		crew(func(int) {
			for k := n; k > 0; k-- {
				m.Lock()
				count++
				m.Unlock()
			}
		})
		check(count == n*uint64(threads), "count")
	})/float64(threads))
}

func yield() {
	report("yield", scale(func(n uint64) {
		crew(func(int) {
			for k := n; k > 0; k-- {
				runtime.Gosched()
			}
		})
	})/float64(threads))
}

func spawn() {
	report("create+join", scale(func(n uint64) {
		for ; n > 0; n-- {
			crew(func(int) {})
		}
	})/float64(threads))
}

// A descriptor as Go programs use it: through the runtime's poller.
func end(fd int) net.Conn {
	f := os.NewFile(uintptr(fd), "pair")
	c, e := net.FileConn(f)
	check(e == nil, "connection")
	f.Close()
	return c
}

func talk(c net.Conn, rounds uint64, first bool) {
	var b [8]byte
	for i := uint64(0); i < rounds; i++ {
		if first {
			binary.LittleEndian.PutUint64(b[:], i)
			c.Write(b[:])
		}
		_, e := io.ReadFull(c, b[:])
		got := binary.LittleEndian.Uint64(b[:])
		if first {
			check(e == nil && got == i+1, "message")
		} else {
			check(e == nil && got == i, "message")
			binary.LittleEndian.PutUint64(b[:], i+1)
			c.Write(b[:])
		}
	}
}

func socket() {
	conns := make([]net.Conn, (threads+1)/2*2)
	for i := 0; i < len(conns); i += 2 {
		fd, e := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		check(e == nil, "socketpair")
		conns[i], conns[i+1] = end(fd[0]), end(fd[1])
	}
	threads = len(conns)
	report("one-way", scale(func(n uint64) {
		crew(func(i int) { talk(conns[i], n, i%2 == 0) })
	})/float64(threads))
}

func main() {
	if len(os.Args) != 5 {
		os.Exit(2)
	}
	threads, _ = strconv.Atoi(os.Args[2])
	vps, _ := strconv.Atoi(os.Args[3])
	seconds, _ = strconv.ParseFloat(os.Args[4], 64)
	runtime.GOMAXPROCS(vps)
	questions := map[string]func(){"rendezvous": rendezvous, "yield": yield, "spawn": spawn,
		"forkjoin": forkjoin, "mutex": mutex, "socket": socket}
	ask := questions[os.Args[1]]
	if ask == nil {
		os.Exit(77)
	}
	ask()
}
