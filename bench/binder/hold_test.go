package binder

import (
	"runtime"
	"testing"
	"time"
)

// A goroutine that Go wants to make room keeps its thread while it holds, and may
// block again afterwards: the runtime ends the program where it may not.
func TestHold(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := newDevice("kernel", &kernel{}, mapping{})
	th := d.Thread()
	for range 2 { // counted once
		th.hold()
	}
	for began := time.Now(); time.Since(began) < 30*time.Millisecond; {
		_ = th.Now()
	}
	for range 2 {
		th.LetGo()
	}
	blocked := make(chan bool)
	go func() { blocked <- true }()
	<-blocked
}

// A handler of a device that is not brief may block.
func TestHandlerMayBlock(t *testing.T) {
	for _, brief := range []bool{false, true} {
		d := newDevice("kernel", &kernel{}, mapping{})
		d.Brief = brief
		number := d.add(nil)
		th := d.Thread()
		th.hold()
		if th.node(number) == nil || th.held != brief {
			t.Errorf("brief %v: held %v", brief, th.held)
		}
		th.LetGo()
	}
}
