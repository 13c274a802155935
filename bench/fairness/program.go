package fairness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// shim waits until it is pinned and its progress is counted, which is from the next exec
	// on. It stays beside the command: the first process of a PID namespace, which it is,
	// has signals of its own that a program must not be surprised by.
	shim = `read -r go <&3 || exit; exec 3<&-; /bin/sh -c "$0"; exit $?`
	// A command that ends so quickly, so often in succession, does no work.
	quickCPU   = 20 * time.Millisecond
	quickSpan  = time.Second
	quickTimes = 5
	maxStderr  = 512 // bytes that are kept of what a command says last
	drainPipes = time.Second
)

// program is one copy of a command. It is started again whenever it ends.
type program struct {
	command int // which of the options' commands
	text    string
	cpu     int
	event   *Event
	lines   atomic.Uint64

	mu     sync.Mutex
	before float64 // progress of the processes that have ended
	fd     int     // of the event of the one that runs; -1: none
	err    error
}

// crew is all programs of a measurement.
type crew struct {
	programs []*program
	cancel   context.CancelFunc
	all      sync.WaitGroup
	faults   chan error
}

// start starts all copies of all commands. The crew must be stopped, also after an error.
func start(ctx context.Context, o Options) (*crew, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &crew{cancel: cancel, faults: make(chan error, o.Copies*len(o.Commands))}
	keepOff(o.CPU)
	for range o.Copies {
		for i, text := range o.Commands {
			p := &program{command: i, text: text, cpu: o.CPU, event: o.Event, fd: -1}
			c.programs = append(c.programs, p)
			c.all.Go(func() {
				if err := p.run(ctx); err != nil {
					p.mu.Lock()
					p.err = err
					p.mu.Unlock()
					c.faults <- err
				}
			})
		}
	}
	return c, ctx.Err()
}

// stop ends all programs, and returns when they and all that they started are gone.
func (c *crew) stop() {
	c.cancel()
	c.all.Wait()
}

// sleep waits for that long, or until ctx or one of the programs fails.
func (c *crew) sleep(ctx context.Context, span time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-c.faults:
		return err
	case <-time.After(span):
		return nil
	}
}

// counts is how far each program has come, and when that was.
func (c *crew) counts() (progress []float64, at time.Time) {
	at = time.Now()
	for _, p := range c.programs {
		progress = append(progress, p.progress())
	}
	return progress, at
}

func (p *program) progress() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.before + float64(p.lines.Load())
	if p.fd >= 0 {
		some, err := readEvent(p.fd)
		if err != nil {
			p.err = errors.Join(p.err, err)
		}
		n += some
	}
	return n
}

func (p *program) fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// run runs the command over and over.
func (p *program) run(ctx context.Context) error {
	// A process that shall end with this one ends with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for quick := 0; ; {
		from := time.Now()
		end, words, err := p.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("command %q: %w", p.text, err)
		}
		code := end.ExitCode()
		if code == 126 || code == 127 { // the shell's
			return fmt.Errorf("command %q: can't be started, exit status %d%s", p.text, code, words)
		}
		if end.UserTime()+end.SystemTime() >= quickCPU || time.Since(from) >= quickSpan {
			quick = 0
			continue
		}
		if quick++; quick == quickTimes {
			fix := "give it more to do, in a loop"
			if code != 0 {
				fix = "see that it works in a shell, by itself"
			}
			return fmt.Errorf("command %q: ends at once, %d times in succession, the last time with exit status %d%s: %s", p.text, quick, code, words, fix)
		}
	}
}

// once runs the command until it ends, or ctx does. words is what it said on its standard
// error last, after a colon.
func (p *program) once(ctx context.Context) (end *os.ProcessState, words string, err error) {
	gate, opener, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	defer opener.Close()
	var said tail
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", shim, p.text)
	cmd.ExtraFiles = []*os.File{gate}
	cmd.Stderr = &said
	if p.event == nil {
		cmd.Stdout = (*counting)(&p.lines)
	}
	cmd.WaitDelay = drainPipes
	// With the first process of a PID namespace all others of it end, however they hide.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: unix.CLONE_NEWPID}
	err = cmd.Start()
	gate.Close()
	if err != nil {
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("%w: run as root", err)
		}
		return nil, "", fmt.Errorf("start: %w", err)
	}
	if err = p.open(cmd.Process.Pid); err == nil {
		_, err = opener.WriteString("go\n")
	}
	if err != nil {
		cmd.Process.Kill()
	}
	waited := cmd.Wait()
	err = errors.Join(err, p.close())
	var exit *exec.ExitError
	if err == nil && waited != nil && !errors.As(waited, &exit) {
		err = waited
	}
	return cmd.ProcessState, said.String(), err
}

// open pins the process, which waits, and counts its progress.
func (p *program) open(pid int) error {
	var set unix.CPUSet
	set.Set(p.cpu)
	if err := unix.SchedSetaffinity(pid, &set); err != nil {
		return fmt.Errorf("keep it on CPU %d: %w", p.cpu, err)
	}
	if p.event == nil {
		return nil
	}
	fd, err := p.event.open(pid)
	p.mu.Lock()
	p.fd = fd
	p.mu.Unlock()
	return err
}

// close keeps what the process that has ended had done.
func (p *program) close() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd >= 0 {
		var some float64
		some, err = readEvent(p.fd)
		p.before += some
		unix.Close(p.fd)
		p.fd = -1
	}
	return err
}

// counting counts lines that are written to it.
type counting atomic.Uint64

func (n *counting) Write(text []byte) (int, error) {
	(*atomic.Uint64)(n).Add(uint64(bytes.Count(text, []byte{'\n'})))
	return len(text), nil
}

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

func (t *tail) Write(text []byte) (int, error) {
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-maxStderr):]
	return len(text), nil
}

// String is that on one line after a colon, "" if there is none.
func (t *tail) String() string {
	words := strings.Join(strings.Fields(strings.ToValidUTF8(string(t.text), "?")), " ")
	if words == "" {
		return ""
	}
	return ": " + words
}
