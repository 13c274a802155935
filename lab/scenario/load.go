package scenario

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// stage is one phase of an experiment in the guest: the loads that it starts,
// which all end with it, and the board on which our own loads count.
type stage struct {
	g      *guest.Guest
	random *rand.Rand
	procs  []*guest.Proc
	board  string
	slots  int
	begun  uint64 // CLOCK_MONOTONIC, ns
}

// newStage begins a phase; its name decides, with the seed, the start offsets.
func newStage(g *guest.Guest, name string) *stage {
	return &stage{g: g, random: g.Rand(name), board: filepath.Join("/tmp", name+".board"), begun: monotonic()}
}

// start starts a load after an offset of up to 4 ms (one tick) that the seed
// chooses: seeds shift phases, they never change the amount of work.
func (s *stage) start(c guest.Cmd) (*guest.Proc, error) {
	s.g.Sleep(time.Duration(s.random.Intn(4000)) * time.Microsecond)
	p, err := s.g.Start(c)
	if err != nil {
		return nil, err
	}
	s.procs = append(s.procs, p)
	return p, nil
}

// startCounting starts one of our loads with the board and its next free slot
// as last arguments, and returns the slot.
func (s *stage) startCounting(c guest.Cmd, slots int) (int, error) {
	first := s.slots
	s.slots += slots
	c.Args = append(append([]string(nil), c.Args...), s.board, strconv.Itoa(first))
	_, err := s.start(c)
	return first, err
}

// startHogs starts n hogs like c (its Path is set unless given) and returns
// their slots.
func (s *stage) startHogs(n int, c guest.Cmd) ([]int, error) {
	if c.Path == "" {
		c.Path = "hog"
	}
	var slots []int
	for range n {
		slot, err := s.startCounting(c, 1)
		if err != nil {
			return nil, err
		}
		slots = append(slots, slot)
	}
	return slots, nil
}

// stop ends all loads of the phase: all are killed before one is waited for,
// because a starved task needs a CPU in order to die.
func (s *stage) stop() {
	s.signal(syscall.SIGKILL)
	for _, p := range s.procs {
		p.Kill()
	}
	s.procs = nil
	os.Remove(s.board)
}

// roam lets the loads that were started on certain CPUs go anywhere.
func (s *stage) roam() error {
	for _, p := range s.procs {
		if err := p.Roam(); err != nil {
			return err
		}
	}
	return nil
}

// pause stops the loads and resume lets them go on.
func (s *stage) pause()  { s.signal(syscall.SIGSTOP) }
func (s *stage) resume() { s.signal(syscall.SIGCONT) }

func (s *stage) signal(signal syscall.Signal) {
	for _, p := range s.procs {
		syscall.Kill(-p.Pid, signal) // a load that has ended needs none
	}
}

// read reads the board.
func (s *stage) read() ([]output.Slot, error) {
	data, err := s.boardBytes()
	if err != nil {
		return nil, err
	}
	return output.Board(data)
}

func (s *stage) boardBytes() ([]byte, error) {
	data, err := os.ReadFile(s.board)
	if err != nil {
		return nil, fmt.Errorf("board: %w", err)
	}
	return data, nil
}

// work returns how many loops each slot does in the next d.
func (s *stage) work(d time.Duration) ([]float64, error) {
	done, err := s.progress(d)
	loops := make([]float64, len(done))
	for i, slot := range done {
		loops[i] = float64(slot.Loops)
	}
	return loops, err
}

// progress returns what each slot counts in the next d: loops and CPU time.
func (s *stage) progress(d time.Duration) ([]output.Slot, error) {
	before, err := s.read()
	if err != nil {
		return nil, err
	}
	s.g.Sleep(d)
	after, err := s.read()
	if err != nil {
		return nil, err
	}
	done := after[:s.slots]
	for i := range done {
		done[i].Loops -= before[i].Loops
		done[i].CPUNs -= before[i].CPUNs
	}
	return done, nil
}

// longestWait returns the longest time in ms for which one of these slots'
// always runnable threads had no CPU, the time until now included.
func (s *stage) longestWait(slots ...int) (float64, error) {
	now := monotonic()
	board, err := s.read()
	if err != nil {
		return 0, err
	}
	longest := uint64(0)
	for _, i := range slots {
		since := board[i].SinceNs
		if since == 0 { // it has never run
			since = s.begun
		}
		longest = max(longest, board[i].GapNs)
		if now > since {
			longest = max(longest, now-since)
		}
	}
	return float64(longest) / 1e6, nil
}

// monotonic is the clock that the loads use.
func monotonic() uint64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return uint64(t.Nano())
}

// stressHogs starts one always runnable task per CPU with the field's own tool
// and waits until it has started them.
func (s *stage) stressHogs() error { return s.stressHogsIn("") }

// stressHogsIn is that in a cgroup.
func (s *stage) stressHogsIn(cgroup string) error {
	if err := s.stress(s.g.CPUs, cgroup); err != nil {
		return err
	}
	s.g.Sleep(500 * time.Millisecond)
	return nil
}

// stress has hogs that compute with integers: of all methods of the tool most are of floating
// point, which takes the host three times as long and is the same to a scheduler.
func (s *stage) stress(hogs int, cgroup string) error {
	_, err := s.start(guest.Cmd{Path: "stress-ng", Args: []string{"--cpu", strconv.Itoa(hogs), "--cpu-method", "int64"}, Cgroup: cgroup})
	return err
}

// nappingCrowd starts two always runnable tasks per CPU, and on each CPU five that sleep
// most of the time, for times that differ from each other and from what is measured: those that
// are alike would come in the same order all the time, and the figures be those of that order.
func (s *stage) nappingCrowd() error {
	if err := s.stress(2*s.g.CPUs, ""); err != nil {
		return err
	}
	for i := range 5 * s.g.CPUs {
		nap := guest.Cmd{Path: "nap", Args: []string{"5", strconv.Itoa(1018 + 37*(i/s.g.CPUs))}, CPUs: strconv.Itoa(i % s.g.CPUs)}
		if _, err := s.startCounting(nap, 1); err != nil {
			return err
		}
	}
	s.g.Sleep(500 * time.Millisecond)
	return nil
}

// hackbenchForever starts hackbench with four groups and more loops than a run
// can last; stop ends it.
func (s *stage) hackbenchForever() error { return s.hackbench("4") }

// hackbenchLight is that with one group, for loads that wait for each other.
func (s *stage) hackbenchLight() error { return s.hackbench("1") }

func (s *stage) hackbench(groups string) error {
	if _, err := s.start(guest.Cmd{Path: "hackbench", Args: []string{"-g", groups, "-l", "100000000"}}); err != nil {
		return err
	}
	s.g.Sleep(300 * time.Millisecond)
	return nil
}

// cpuTime is the CPU time that all loads of the stage get in the next d.
func (s *stage) cpuTime(d time.Duration) (time.Duration, error) {
	done, err := s.progress(d)
	return sumCPU(done), err
}

// cpuUsed is the CPU time that they have had.
func (s *stage) cpuUsed() (time.Duration, error) {
	board, err := s.read()
	return sumCPU(board), err
}

// commTime is the CPU time that all tasks of this name have had, while they live.
func commTime(comm string) (sum time.Duration) {
	found, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range found {
		name, _ := os.ReadFile(path)
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "schedstat"))
		if strings.TrimSpace(string(name)) != comm || err != nil {
			continue
		}
		ns, _, _ := strings.Cut(string(stat), " ")
		if n, err := strconv.ParseInt(ns, 10, 64); err == nil {
			sum += time.Duration(n)
		}
	}
	return sum
}

func sumCPU(slots []output.Slot) (sum time.Duration) {
	for _, slot := range slots {
		sum += time.Duration(slot.CPUNs)
	}
	return sum
}
