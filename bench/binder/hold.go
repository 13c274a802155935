package binder

import _ "unsafe" // for go:linkname

// Go asks a goroutine that has run for 10 ms to make room, and a thread that
// waits in the driver runs, as far as Go knows (kernel.exchange). It would do so
// right after its next call came: being locked to its thread, it would sleep until
// another thread of the process has had a CPU and handed it back, behind all that
// the machine has to do. No server that is not written in Go has such a wait, so a
// thread does not let go of its processor from before it waits until the answer is
// made. Meanwhile nothing may block in Go's sense: no locks, channels or files.

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// hold keeps the processor until LetGo. Drivers of tests block, and are not held for.
func (t *Thread) hold() {
	if _, real := t.device.driver.(*kernel); real && !t.held {
		procPin()
		t.held = true
	}
}

// LetGo is for handlers that may block although their device is Brief.
func (t *Thread) LetGo() {
	if t.held {
		t.held = false
		procUnpin()
	}
}
