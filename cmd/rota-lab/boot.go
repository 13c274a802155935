package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rota/lab"
	"rota/lab/arch"
	"rota/lab/cell"
	"rota/lab/guest"
	"rota/lab/guest/initramfs"
	"rota/lab/kernels"
	"rota/lab/machine"
)

// boot holds the flags of commands that boot one machine.
type boot struct {
	kernel, sched, config string
	files, tools, modules []string
	machine               machine.Machine
	turns                 string
	limit                 time.Duration
	seed                  int64
}

// defaultKernel is the row that is booted when none is asked for.
const defaultKernel = "6.18"

func (b *boot) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&b.kernel, "kernel", defaultKernel, "row of the kernel list, or path of an image")
	f.StringVar(&b.sched, "sched", "kernel", "scheduler: kernel, rota, a peer (see: rota-lab peers), or the path of a sched_ext program")
	f.StringVar(&b.config, "config", "", "configuration file for rota")
	f.StringArrayVar(&b.files, "file", nil, "copy a host file into the guest, as HOST=GUEST")
	f.StringArrayVar(&b.tools, "tool", nil, "copy a host program and its libraries into the guest's /bin")
	f.StringArrayVar(&b.modules, "module", nil, "load a kernel module; parameters follow its name after a space")
	f.DurationVar(&b.limit, "limit", 10*time.Minute, "virtual time after which the guest is given up, 0 = none")
	f.Int64Var(&b.seed, "seed", 1, "seed of the random choices")
	turnsFlag(c, &b.turns, string(guest.TurnsFine))
	machineFlags(c, &b.machine)
}

// turnsFlag says how finely virtual CPUs take turns; def is what they do without it.
func turnsFlag(c *cobra.Command, turns *string, def string) {
	c.Flags().StringVar(turns, "turns", "", fmt.Sprintf("how finely virtual CPUs take turns: %s, %s (twice the host's time), or %s (default: %s)",
		guest.TurnsFine, guest.TurnsFinest, guest.TurnsNone, def))
}

func checkTurns(turns string) error {
	if err := guest.Turns(turns).Check(); err != nil {
		return fmt.Errorf("--turns: %w", err)
	}
	return nil
}

// machineFlags are the flags of everything that boots.
func machineFlags(c *cobra.Command, m *machine.Machine) {
	f := c.Flags()
	f.IntVar(&m.CPUs, "cpus", 0, "virtual CPUs (default 4)")
	f.IntVar(&m.Sockets, "sockets", 0, "sockets of the virtual CPUs (default 1)")
	f.IntVar(&m.Cores, "cores", 0, "cores per socket (default: as many as there are CPUs)")
	f.IntVar(&m.Threads, "threads", 0, "threads per core (default 1)")
	f.IntVar(&m.MemoryMB, "memory", 0, "memory in MB (default 1024)")
	f.StringArrayVar(&m.Append, "append", nil, "add a kernel parameter")
	f.StringArrayVar(&m.NICs, "nic", nil, "add a network card of this model, as e1000e; all are on one wire")
	f.BoolVar(&m.Realtime, "realtime", false, "run on the host's clock, with KVM where it is; results are not repeatable")
	f.DurationVar(&m.HostLimit, "host-limit", 30*time.Minute, "host time after which a machine is ended, 0 = none")
}

// cell turns the flags into a cell that does what plan names.
func (b *boot) cell(ctx context.Context, plan guest.Plan) (cell.Cell, error) {
	if err := checkTurns(b.turns); err != nil {
		return cell.Cell{}, err
	}
	scheduler, _, err := schedulerCommand(b.sched)
	if err != nil {
		return cell.Cell{}, err
	}
	k, err := kernelWith(ctx, b.kernel, b.modules)
	if err != nil {
		return cell.Cell{}, err
	}
	c, err := newCell(k, b.machine)
	if err != nil {
		return c, err
	}
	plan.Row = guest.Row{Name: "exec", Scheduler: scheduler}
	plan.Seed, plan.CPUs, plan.Limit, plan.Turns = b.seed, c.Machine.CPUs, b.limit, guest.Turns(b.turns)
	if b.config != "" {
		text, err := os.ReadFile(b.config)
		if err != nil {
			return c, err
		}
		plan.Row.Config = string(text)
	}
	c.Plan, c.Tools, c.Modules = plan, b.tools, b.modules
	for _, f := range b.files {
		host, inside, found := strings.Cut(f, "=")
		if !found || host == "" || !filepath.IsAbs(inside) {
			return c, fmt.Errorf("--file %q: must be HOST=GUEST with an absolute guest path", f)
		}
		c.Files = append(c.Files, cell.File{Host: host, Guest: inside})
	}
	return c, nil
}

// newCell is a cell with this program as its guest and the rota beside it.
func newCell(k kernels.Kernel, m machine.Machine) (cell.Cell, error) {
	if m.CPUs == 0 {
		m.CPUs = machine.DefaultCPUs
	}
	c := cell.Cell{Kernel: k, Machine: m, Rota: built("rota", k.Arch)}
	if k.Arch.Name == arch.Own().Name {
		self, err := os.Executable()
		c.Init = self
		return c, err
	}
	if c.Init = built("rota-lab", k.Arch); c.Init == "" {
		return c, fmt.Errorf("kernel %s: needs %s/rota-lab beside this program, its guest; build it with: make %s", k.Name, k.Arch.Name, k.Arch.Name)
	}
	return c, nil
}

// built finds a program of ours for machines of an architecture: those for another
// one than this program's are in a directory of that name. "" when it is not there.
func built(name string, a arch.Arch) string {
	if a.Name != arch.Own().Name {
		name = filepath.Join(a.Name, name)
	}
	return beside(name)
}

// beside finds a file in the directory of this program, "" when it is not there.
func beside(name string) string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// kernel gets a kernel and says on standard error what takes long or is odd.
func kernel(ctx context.Context, want string) (kernels.Kernel, error) {
	store, err := openStore(nil)
	if err != nil {
		return kernels.Kernel{}, err
	}
	k, err := store.Get(ctx, want)
	if err == nil && k.Note != "" {
		say("%s", k.Note)
	}
	return k, err
}

// kernelWith gets a kernel that has these modules. A row that lacks one is replaced by a row of
// the same version that has them all, and the kernel's Note says so; where none has them it is the
// one that was asked for, and building its guest says what it lacks.
func kernelWith(ctx context.Context, want string, modules []string) (kernels.Kernel, error) {
	k, err := kernel(ctx, want)
	if err != nil {
		return k, err
	}
	lacks, err := initramfs.LacksModule(k.ModulesDir, modules)
	if err != nil || lacks == "" {
		return k, err
	}
	store, err := openStore(nil)
	if err != nil {
		return k, err
	}
	fuller, err := fullerKernel(ctx, store, want, modules)
	if err != nil {
		return k, fmt.Errorf("kernel %s: has no module %q, and another of its version could not be had: %w", k.Name, lacks, err)
	}
	if fuller.Name == "" || fuller.Version != k.Version {
		return k, nil
	}
	if fuller.Note != "" {
		say("%s", fuller.Note)
	}
	note := fmt.Sprintf("kernel %s: has no module %q; %s, the same version, took its place", k.Name, lacks, fuller.Name)
	say("%s", note)
	fuller.Note = strings.TrimPrefix(fuller.Note+"; "+note, "; ")
	return fuller, nil
}

// fullerKernel is the first kernel of the same version as want's that has all these modules. Its
// name is "" when there is none.
func fullerKernel(ctx context.Context, store kernels.Store, want string, modules []string) (kernels.Kernel, error) {
	row, known := store.Lock.Find(want)
	if !known {
		return kernels.Kernel{}, nil
	}
	for _, other := range store.Lock.Others(row) {
		k, err := store.Get(ctx, other.Name)
		if err != nil {
			return kernels.Kernel{}, err
		}
		lacks, err := initramfs.LacksModule(k.ModulesDir, modules)
		if err != nil {
			return kernels.Kernel{}, err
		}
		if lacks == "" {
			return k, nil
		}
	}
	return kernels.Kernel{}, nil
}

func openStore(mirrors []kernels.Mirror) (kernels.Store, error) {
	dir, err := kernels.DefaultDir()
	if err != nil {
		return kernels.Store{}, err
	}
	text, err := lockText()
	if err != nil {
		return kernels.Store{}, err
	}
	lock, err := kernels.ParseLock(text)
	return kernels.Store{Dir: dir, Lock: lock, Mirrors: mirrors, Log: say}, err
}

// lockFile is the repository's lock file when the program lies in its bin/.
func lockFile() string { return beside("../lab/kernels.lock") }

// lockText prefers the repository's file to the copy in the program.
func lockText() ([]byte, error) {
	if path := lockFile(); path != "" {
		return os.ReadFile(path)
	}
	return []byte(lab.KernelsLock), nil
}

// say tells the person at the terminal how it goes.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
