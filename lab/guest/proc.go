package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// outDir is a tmpfs of bounded size that keeps the programs' output: a file
// costs no wake-up of the measuring shell while the load runs, a pipe would.
const outDir = "/run/out"

// Proc is a started program, the leader of its own process group.
type Proc struct {
	Pid  int
	Name string

	cmd         *exec.Cmd
	out, err    string // files that hold the streams, "" when the caller gave his own
	start       time.Time
	done        chan struct{}
	mu          sync.Mutex
	result      Output
	resultError error
}

// Start starts a program and returns when it has been executed, with all its
// attributes set. An attribute that the kernel refuses is an error here.
func (g *Guest) Start(c Cmd) (*Proc, error) {
	p, err := start(c)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Path, err)
	}
	return p, nil
}

// Run starts a program and waits for it. An exit code other than 0 is an
// error that quotes the program's last words; Output is filled in all cases.
func (g *Guest) Run(c Cmd) (Output, error) {
	p, err := g.Start(c)
	if err != nil {
		return Output{}, err
	}
	return p.Wait()
}

func start(c Cmd) (*Proc, error) {
	path, err := lookPath(c.Path)
	if err != nil {
		return nil, err
	}
	c.Path = path
	attributes, err := json.Marshal(stageOf(c))
	if err != nil {
		return nil, err
	}
	report, reportEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer report.Close()
	p := &Proc{Name: filepath.Base(path), done: make(chan struct{})}
	p.cmd = exec.Command("/proc/self/exe", append([]string{stageArg, string(attributes), path}, c.Args...)...)
	p.cmd.Args[0] = "/init"
	p.cmd.Dir = c.Dir
	if c.Dir == "" {
		p.cmd.Dir = "/"
	}
	p.cmd.Env = append(baseEnv(), c.Env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.ExtraFiles = []*os.File{reportEnd} // fd 3, see runStage
	opened, err := p.streams(c)
	if err == nil {
		err = p.cmd.Start()
	}
	for _, f := range append(opened, reportEnd) {
		f.Close()
	}
	if err != nil {
		return nil, err
	}
	p.Pid, p.start = p.cmd.Process.Pid, time.Now()
	go p.collect()
	// The stage closes its end by becoming the program, or says its fault.
	fault, err := io.ReadAll(io.LimitReader(report, 4096))
	if err == nil && len(fault) > 0 {
		err = errors.New(string(fault))
	}
	if err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

func (p *Proc) streams(c Cmd) (opened []*os.File, err error) {
	keep := func(given *os.File, suffix string) (*os.File, string, error) {
		if given != nil {
			return given, "", nil
		}
		f, err := os.CreateTemp(outDir, p.Name+"-*."+suffix)
		if err != nil {
			return nil, "", fmt.Errorf("keep its output: %w", err)
		}
		opened = append(opened, f)
		return f, f.Name(), nil
	}
	in, err := os.CreateTemp(outDir, p.Name+"-*.in")
	if err != nil {
		return opened, fmt.Errorf("give its input: %w", err)
	}
	opened = append(opened, in)
	os.Remove(in.Name())
	if _, err = in.WriteString(c.Stdin); err != nil {
		return opened, err
	}
	if _, err = in.Seek(0, io.SeekStart); err != nil {
		return opened, err
	}
	p.cmd.Stdin = in
	var f *os.File
	if f, p.out, err = keep(c.Stdout, "out"); err != nil {
		return opened, err
	}
	p.cmd.Stdout = f
	if f, p.err, err = keep(c.Stderr, "err"); err != nil {
		return opened, err
	}
	p.cmd.Stderr = f
	return opened, nil
}

func (p *Proc) collect() {
	err := p.cmd.Wait()
	elapsed := time.Since(p.start)
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.cmd.ProcessState
	p.result.Elapsed = elapsed
	p.result.User, p.result.System = state.UserTime(), state.SystemTime()
	status := state.Sys().(syscall.WaitStatus)
	p.result.Exit = status.ExitStatus()
	if status.Signaled() {
		p.result.Exit = 128 + int(status.Signal())
	}
	var cut1, cut2 bool
	p.result.Stdout, cut1 = tail(p.out)
	p.result.Stderr, cut2 = tail(p.err)
	p.result.Truncated = cut1 || cut2
	for _, f := range []string{p.out, p.err} {
		if f != "" {
			os.Remove(f)
		}
	}
	if err != nil {
		p.resultError = fmt.Errorf("%s: %w: %s", p.Name, err, lastWords(p.result))
	}
	close(p.done)
}

// Wait waits for the end of the program; it may be called several times.
func (p *Proc) Wait() (Output, error) {
	<-p.done
	return p.result, p.resultError
}

// WaitFor is Wait with a limit of virtual time; on passing it the program
// runs on and the error wraps os.ErrDeadlineExceeded.
func (p *Proc) WaitFor(d time.Duration) (Output, error) {
	select {
	case <-p.done:
		return p.result, p.resultError
	case <-time.After(d):
		return Output{}, fmt.Errorf("%s (pid %d) still runs after %v: %w", p.Name, p.Pid, d, os.ErrDeadlineExceeded)
	}
}

// Running reports whether the program has not ended yet.
func (p *Proc) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Roam lets the program, which has one thread, go to all CPUs that its cgroup has. A scheduler that goes by
// names may move a program that it has not heard of yet: one that is bound until then begins where it should.
func (p *Proc) Roam() error {
	if err := setAffinity(p.Pid, fmt.Sprintf("0-%d", maxCPU)); err != nil {
		return fmt.Errorf("%s (pid %d): %w", p.Name, p.Pid, err)
	}
	return nil
}

// Signal sends a signal to the program alone.
func (p *Proc) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends the program and its process group with SIGKILL and waits for it.
func (p *Proc) Kill() Output {
	if p.Running() {
		syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
	out, _ := p.Wait()
	return out
}

// Stop asks the program and its process group to end with SIGTERM and kills
// them after grace.
func (p *Proc) Stop(grace time.Duration) Output {
	if p.Running() {
		syscall.Kill(-p.Pid, syscall.SIGTERM)
	}
	if _, err := p.WaitFor(grace); errors.Is(err, os.ErrDeadlineExceeded) {
		return p.Kill()
	}
	return p.result
}

// Output returns what the program has printed so far.
func (p *Proc) Output() Output {
	if !p.Running() {
		return p.result
	}
	var o Output
	o.Stdout, _ = tail(p.out)
	o.Stderr, _ = tail(p.err)
	o.Elapsed = time.Since(p.start)
	return o
}

// tail reads the last MaxOutput bytes of a file; a missing one is empty.
func tail(path string) (string, bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	cut := false
	if st, err := f.Stat(); err == nil && st.Size() > MaxOutput {
		f.Seek(-MaxOutput, io.SeekEnd)
		cut = true
	}
	b, _ := io.ReadAll(io.LimitReader(f, MaxOutput))
	return string(b), cut
}

// lastWords is what an error quotes: the end of stderr, else of stdout.
func lastWords(o Output) string {
	text := bytes.TrimSpace([]byte(o.Stderr))
	if len(text) == 0 {
		text = bytes.TrimSpace([]byte(o.Stdout))
	}
	if len(text) == 0 {
		return "it printed nothing"
	}
	if len(text) > 2000 {
		text = text[len(text)-2000:]
	}
	return string(text)
}

func lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		_, err := os.Stat(name)
		return name, err
	}
	for _, dir := range []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin"} {
		if path := filepath.Join(dir, name); isFile(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("not in the guest: add it to the scenario's Tools or Loads")
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

func baseEnv() []string {
	return []string{"PATH=/bin:/usr/bin:/sbin:/usr/sbin", "HOME=/root", "TMPDIR=/tmp", "LC_ALL=C"}
}

// Threads says of each thread that the program still has what state it is in and where in
// the kernel it is: what one that was killed still waits for.
func (p *Proc) Threads() string {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid))
	var threads []string
	for _, path := range stats {
		stat, _ := os.ReadFile(path)
		stack, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stack"))
		_, state, tid := parseStat(string(stat))
		var calls []string
		for line := range strings.Lines(string(stack)) {
			call, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "[<0>] "), "+")
			calls = append(calls, call)
		}
		threads = append(threads, fmt.Sprintf("%s %s in %s", tid, state, strings.Join(calls, " < ")))
	}
	if len(threads) == 0 {
		return "none"
	}
	return strings.Join(threads, "; ")
}
