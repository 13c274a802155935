// Package peer runs a bench as several processes of the one program: it starts
// the program again in a role, hands it an order, hears its answers, and ends
// it. Messages are JSON over two pipes; what a process says is bounded.
//
// A process in a role ends when its parent ends, however that happens: it
// notices the end of its pipe. It does not know what a role does: the benches
// give their roles to Main.
package peer

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// Role is what a process does; it ends with the process.
type Role func(*Peer) error

// roleArg is the first argument of a process in a role; the role's name follows.
const roleArg = "bench-peer"

// answerFd is where a process in a role answers; its orders come on standard input.
const answerFd = 3

// Peer is this process in its role.
type Peer struct {
	orders chan []byte
	answer io.Writer
}

// Main does not return in a process that was started in a role.
func Main(args []string, roles map[string]Role) {
	if len(args) != 3 || args[1] != roleArg {
		return
	}
	// The terminal's signals are for the parent, which ends us.
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	p := &Peer{orders: make(chan []byte, 4), answer: os.NewFile(answerFd, "answers")}
	syscall.CloseOnExec(answerFd)
	go p.listen(pollable(os.Stdin))
	rename(args[2])
	role, known := roles[args[2]]
	err := fmt.Errorf("role %q: not in this program", args[2])
	if known {
		err = role(p)
	}
	if err != nil {
		p.send(envelope{Fault: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

// maxName is how much of a thread's name the kernel keeps, in bytes.
const maxName = 15

// rename gives the threads of a role its last word as their name, after "bench-", so
// that a scheduler's rules can tell roles apart. Threads that are made later get it
// from those that make them; it looks again for those that were being made. Without
// it the bench measures the same.
func rename(role string) {
	name := "bench-" + role[strings.LastIndexByte(role, '-')+1:]
	name = name[:min(len(name), maxName)]
	for renameThreads(name) > 0 {
	}
}

// renameThreads names the threads that are called something else, and returns how
// many it named.
func renameThreads(name string) (named int) {
	threads, _ := filepath.Glob("/proc/self/task/*/comm")
	for _, thread := range threads {
		was, err := os.ReadFile(thread)
		if err != nil || string(was) == name+"\n" {
			continue
		}
		if os.WriteFile(thread, []byte(name), 0) == nil {
			named++
		}
	}
	return named
}

// pollable is a pipe whose reader waits in Go's poller and not in a system call. Go 1.26 may take
// a minute to stop all goroutines, as for GOMAXPROCS, while one has just gone into a system call that does not
// return: it looks whether it is to stop before it says where it is. The next order may be long after that.
func pollable(pipe *os.File) *os.File {
	fd := int(pipe.Fd())
	if syscall.SetNonblock(fd, true) != nil {
		return pipe // it still works
	}
	return os.NewFile(uintptr(fd), pipe.Name())
}

// listen takes orders until the parent has ended, and then ends this process.
func (p *Peer) listen(orders io.Reader) {
	for {
		message, err := readMessage(orders)
		if err != nil {
			os.Exit(0)
		}
		p.orders <- message
	}
}

// Order waits for the next order.
func (p *Peer) Order(into any) error {
	if err := json.Unmarshal(<-p.orders, into); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	return nil
}

// Say answers the parent.
func (p *Peer) Say(what any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return p.send(envelope{Body: body})
}

func (p *Peer) send(e envelope) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return writeMessage(p.answer, text)
}
