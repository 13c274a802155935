package guest

import (
	"os"
	"time"
)

// Cmd describes one program to start in the guest. It is started through a
// re-exec of PID 1's binary that sets every attribute and then becomes the
// program, so the program never runs with the attributes of the measuring
// shell (which is SCHED_FIFO).
type Cmd struct {
	Path string   // absolute, or looked up in /bin
	Args []string // without the program's name
	Env  []string // "K=V", on top of PATH, HOME and TMPDIR
	Dir  string   // "" = /

	Policy   string        // "other" (or ""), "batch", "idle", "fifo", "rr", "ext"
	Priority int           // 1..99 for fifo and rr
	Nice     int           // -20..19 for the others
	Slice    time.Duration // custom slice of EEVDF (sched_runtime); 0 = the kernel's
	CPUs     string        // "0-1,3"; "" = all; see Proc.Roam
	Cgroup   string        // path below /sys/fs/cgroup; "" = the root
	Netns    string        // name made with Guest.Netns; "" = the first

	Stdin  string   // text given on standard input
	Stdout *os.File // nil = kept for Output, at most MaxOutput bytes
	Stderr *os.File // nil = kept for Output, at most MaxOutput bytes
}

// MaxOutput bounds what Output keeps of each stream, in bytes: the last ones.
const MaxOutput = 1 << 20

// Output is what a finished program left.
type Output struct {
	Stdout, Stderr string
	Exit           int           // exit code; 128+n when ended by signal n
	Elapsed        time.Duration // virtual time from exec to end
	User, System   time.Duration // CPU time of the program and its waited-for children
	Truncated      bool          // a stream was longer than MaxOutput
}
