package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Group is the processes of one bench.
type Group struct {
	// Text is where the processes write what is for people.
	Text *os.File

	ctx context.Context
	mu  sync.Mutex
	all []*Process
}

// NewGroup makes a group whose processes end with ctx.
func NewGroup(ctx context.Context, text *os.File) *Group {
	g := &Group{Text: text, ctx: ctx}
	context.AfterFunc(ctx, g.Stop)
	return g
}

// Process is one process in a role, as its parent sees it.
type Process struct {
	PID    int
	name   string
	group  *Group
	cmd    *exec.Cmd
	orders *os.File
	answer *os.File
	once   sync.Once
	end    error
}

// Start starts this program again in a role and gives it its first order. The
// process has files as descriptors 4 and up; name is for messages.
func (g *Group) Start(name, role string, order any, files ...*os.File) (*Process, error) {
	stdin, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	answer, said, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, orders.Close())
	}
	defer said.Close()
	p := &Process{name: name, group: g, orders: orders, answer: answer}
	program, err := os.Executable() // by its name, which is what rules match
	if err != nil {
		program = "/proc/self/exe"
	}
	p.cmd = exec.Command(program, roleArg, role)
	p.cmd.Args[0] = os.Args[0]
	// Go's own signals would interrupt what is measured.
	p.cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, g.Text, os.Stderr
	p.cmd.ExtraFiles = append([]*os.File{said}, files...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := g.start(p); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), orders.Close(), answer.Close())
	}
	return p, p.Tell(order)
}

// start starts p unless the group has ended.
func (g *Group) start(p *Process) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.ctx.Err(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.PID = p.cmd.Process.Pid
	g.all = append(g.all, p)
	return nil
}

// Tell gives a process an order.
func (p *Process) Tell(order any) error {
	text, err := json.Marshal(order)
	if err == nil {
		err = writeMessage(p.orders, text)
	}
	if err != nil {
		return fmt.Errorf("%s: give it an order: %w", p.name, err)
	}
	return nil
}

// Hear waits for an answer. A process that has ended is an error that says how.
func (p *Process) Hear(into any) error {
	text, err := readMessage(p.answer)
	if cause := p.group.ctx.Err(); err != nil && cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: it has ended before its work was done: %w", p.name, p.ended())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("%s: its answer: %w", p.name, err)
	}
	if e.Fault != "" {
		return fmt.Errorf("%s: %s", p.name, e.Fault)
	}
	if err := json.Unmarshal(e.Body, into); err != nil {
		return fmt.Errorf("%s: its answer: %w", p.name, err)
	}
	return nil
}

// ended waits for the process; nil is an end without a fault.
func (p *Process) ended() error {
	p.once.Do(func() { p.end = p.cmd.Wait() })
	if p.end == nil {
		return errors.New("exit status 0")
	}
	return p.end
}

// Stop ends the process and waits until it is gone.
func (p *Process) Stop() {
	p.orders.Close()
	p.cmd.Process.Kill()
	p.ended()
}

// Stop ends all processes, and waits until they are gone.
func (g *Group) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.all {
		p.orders.Close()
		p.cmd.Process.Kill()
	}
	for _, p := range g.all {
		p.ended()
	}
}
