package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Outcome is what a machine left behind.
type Outcome struct {
	Console string // the last MiB of the console
	Results []byte // what came out of the second serial port, at most MaxResults
	Elapsed time.Duration
}

// Bounds on what is read back, in bytes.
const (
	MaxConsole = 1 << 20
	MaxResults = 32 << 20
	maxPort    = 64 << 20 // on disk, of one port
)

// ErrHostLimit says that a machine was ended because HostLimit had passed.
var ErrHostLimit = errors.New("host time limit")

// Run boots the machine and waits until it has ended. An error says how it
// failed and ends with what the guest printed last; the outcome is filled as
// far as there is one. QEMU is ended when ctx is.
func (m Machine) Run(ctx context.Context) (Outcome, error) {
	m = m.withDefaults()
	if err := m.check(); err != nil {
		return Outcome{}, err
	}
	qemu, err := m.find(ctx)
	if err != nil {
		return Outcome{}, err
	}
	dir, err := os.MkdirTemp("", "rota-machine-")
	if err != nil {
		return Outcome{}, fmt.Errorf("machine: %w", err)
	}
	defer os.RemoveAll(dir)
	// Files never block: a pipe that is full would make QEMU wait, and the
	// guest's time would depend on the reader.
	console, results := filepath.Join(dir, "console"), filepath.Join(dir, "results")
	args := m.arguments("file,id=console,path="+escape(console), "file,id=results,path="+escape(results))
	limited := ctx
	if m.HostLimit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, m.HostLimit, ErrHostLimit)
		defer cancel()
	}
	start := time.Now()
	stopWatching := follow(console, m.Watch)
	words, err := runQEMU(limited, qemu, args, nil, m.howToStart())
	stopWatching()
	out := Outcome{Elapsed: time.Since(start)}
	out.Console, _ = readTail(console, MaxConsole)
	out.Results, _ = readHead(results, MaxResults)
	return out, m.judge(limited, out, words, err)
}

// Interactive boots the machine with its console on the caller's terminal;
// results go to w. It returns when the machine has ended.
func (m Machine) Interactive(ctx context.Context, w io.Writer) error {
	m = m.withDefaults()
	if err := m.check(); err != nil {
		return err
	}
	qemu, err := m.find(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rota-machine-")
	if err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	defer os.RemoveAll(dir)
	results := filepath.Join(dir, "results")
	args := m.arguments("stdio,id=console,signal=off", "file,id=results,path="+escape(results))
	words, err := runQEMU(ctx, qemu, args, os.Stdin, m.howToStart())
	if b, readError := readHead(results, MaxResults); readError == nil {
		w.Write(b)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("qemu: %w: %s", err, words)
	}
	return ctx.Err()
}

// starter starts QEMU, bounds what it writes, and says what is to be done once it has ended. After
// an error QEMU may run.
type starter func(*exec.Cmd) (release func(), err error)

// howToStart is how this machine's QEMU is started: one that counts in order, where that can be had.
func (m Machine) howToStart() starter {
	if m.Realtime || m.RealIdle || Ordered() != nil {
		return startAnywhere
	}
	return startInOrder
}

func startAnywhere(cmd *exec.Cmd) (release func(), err error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {}, boundPorts(cmd.Process.Pid)
}

// boundPorts keeps a guest that never stops talking from filling the disk: QEMU is ended when one
// of its ports has written this much.
func boundPorts(pid int) error {
	limit := unix.Rlimit{Cur: maxPort, Max: maxPort}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		return fmt.Errorf("bound what it writes: %w", err)
	}
	return nil
}

// runQEMU returns what QEMU itself said. terminal is nil for a machine that
// nobody watches.
func runQEMU(ctx context.Context, qemu string, args []string, terminal *os.File, start starter) (string, error) {
	// The death signal below, and where QEMU runs, are bound to the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var words bytes.Buffer
	cmd := exec.CommandContext(ctx, qemu, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "LC_ALL=C"}
	cmd.Stdout, cmd.Stderr = &words, &words
	if terminal != nil {
		cmd.Stdin, cmd.Stdout = terminal, os.Stdout
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	release, err := start(cmd)
	if release != nil {
		defer release()
	}
	if err != nil {
		if cmd.Process != nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
		return "", err
	}
	err = cmd.Wait()
	return strings.TrimSpace(words.String()), err
}

// judge turns the ways a machine can fail into words.
func (m Machine) judge(ctx context.Context, out Outcome, qemuWords string, err error) error {
	said := LastWords(out.Console)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrHostLimit):
		return fmt.Errorf("machine: not finished within its %w of %v; the guest said last:\n%s", ErrHostLimit, m.HostLimit, said)
	case cause != nil:
		return cause
	case err != nil:
		return fmt.Errorf("qemu: %w: %s; the guest said last:\n%s", err, qemuWords, said)
	}
	if fault := KernelFault(out.Console); fault != "" {
		return fmt.Errorf("kernel: %s; the guest said last:\n%s", fault, said)
	}
	return nil
}

func readTail(path string, limit int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > limit {
		f.Seek(-limit, io.SeekEnd)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit))
	return string(b), err
}

func readHead(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
