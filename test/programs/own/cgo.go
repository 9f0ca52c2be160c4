package main

/*
#include <unistd.h>
#include <pthread.h>
static void *body(void *a) { usleep(1000); return a; }
static int nap(int n) {
	pthread_t t[4];
	for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, body, 0);
	for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
	usleep(1000);
	return n * 2;
}
*/
import "C"

import (
	"fmt"
	"net"
	"os/exec"
	"sync"
)

func main() {
	var wg sync.WaitGroup
	var m sync.Mutex
	sum := 0
	for i := 0; i < 50; i++ {
		wg.Add(1)
		go func(n int) {
			defer wg.Done()
			v := int(C.nap(C.int(n)))
			m.Lock()
			sum += v
			m.Unlock()
		}(i)
	}
	wg.Wait()
	fmt.Println("cgo", sum)
	c := make(chan int)
	for i := 0; i < 8; i++ {
		go func() { s := 0; for k := 0; k < 1000000; k++ { s += k % 7 }; c <- s }()
	}
	s := 0
	for i := 0; i < 8; i++ {
		s += <-c
	}
	fmt.Println("channels", s)
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() { k, _ := l.Accept(); k.Write([]byte("hello")); k.Close() }()
	k, _ := net.Dial("tcp", l.Addr().String())
	b := make([]byte, 5)
	k.Read(b)
	out, _ := exec.Command("echo", "child").Output()
	fmt.Println(string(b), string(out))
}
