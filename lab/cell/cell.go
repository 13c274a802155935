// Package cell runs one cell of the lab: one kernel, one row, one seed, one
// boot. It puts the initramfs together, boots the machine and reads what the
// guest reported.
//
// It knows no scenario and prints nothing: cmd/rota-lab fills in a Cell and
// turns the outcome into a report.
package cell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"rota/lab/arch"
	"rota/lab/guest"
	"rota/lab/guest/initramfs"
	"rota/lab/kernels"
	"rota/lab/machine"
)

// Cell is one boot to be made.
type Cell struct {
	Kernel  kernels.Kernel
	Machine machine.Machine // its Arch, Kernel, Initramfs and EventTimers are filled in by Run
	Plan    guest.Plan      // its Modules and Links are filled in by Run

	Init  string // our own binary, the guest's PID 1
	Rota  string // the rota binary, needed by rows with scheduler "rota"
	Tools []string
	Loads []string // paths of static programs
	// Modules are names; what they depend on is found.
	Modules []string
	Files   []File // further host files
}

// File is a host file and where the guest has it.
type File struct{ Host, Guest string }

// Outcome is what a cell left behind.
type Outcome struct {
	Results guest.Results
	Console string
}

// Run boots the cell. Whatever went wrong, in the guest, in the kernel or in
// QEMU, is the error; the outcome is filled as far as there is one.
func (c Cell) Run(ctx context.Context) (Outcome, error) {
	booted, remove, err := c.prepare()
	if err != nil {
		return Outcome{}, err
	}
	defer remove()
	left, err := booted.Run(ctx)
	return judge(left, err)
}

// Shell boots the cell with its console on the terminal.
func (c Cell) Shell(ctx context.Context) error {
	booted, remove, err := c.prepare()
	if err != nil {
		return err
	}
	defer remove()
	booted.RealIdle = true
	var results bytes.Buffer
	if err := booted.Interactive(ctx, &results); err != nil {
		return err
	}
	r, err := guest.ReadResults(&results)
	if err != nil {
		return err
	}
	return guestError(r)
}

// judge says what failed, the cause before its effects.
func judge(left machine.Outcome, machineError error) (Outcome, error) {
	out := Outcome{Console: left.Console}
	var err error
	out.Results, err = guest.ReadResults(bytes.NewReader(left.Results))
	said := guestError(out.Results)
	switch {
	case machineError != nil:
		return out, errors.Join(machineError, said)
	case err != nil:
		return out, fmt.Errorf("guest: %w; it said last:\n%s", errors.Join(err, said), machine.LastWords(left.Console))
	}
	return out, said
}

// guestError is what the guest itself called a failure.
func guestError(r guest.Results) error {
	if len(r.Errors) > 0 {
		return errors.New(strings.Join(r.Errors, "; "))
	}
	if r.Exit != 0 {
		return fmt.Errorf("guest: exit code %d and no word why", r.Exit)
	}
	return nil
}

// prepare writes the initramfs to a temporary file and completes the machine.
func (c Cell) prepare() (m machine.Machine, remove func(), err error) {
	im, err := c.image()
	if err != nil {
		return m, nil, err
	}
	f, err := os.CreateTemp("", "rota-initramfs-")
	if err != nil {
		return m, nil, fmt.Errorf("initramfs: %w", err)
	}
	remove = func() { os.Remove(f.Name()) }
	_, err = im.WriteTo(f)
	if err = errors.Join(err, f.Close()); err != nil {
		remove()
		return m, nil, fmt.Errorf("initramfs: %w", err)
	}
	m = c.Machine
	m.Arch, m.Kernel, m.Initramfs = c.Kernel.Arch, c.Kernel.Boot, f.Name()
	m.EventTimers = c.Plan.Turns.EventTimers()
	return m, remove, nil
}

// WriteImage writes the cell's initramfs.
func (c Cell) WriteImage(w io.Writer) error {
	im, err := c.image()
	if err != nil {
		return err
	}
	_, err = im.WriteTo(w)
	return err
}

func (c Cell) image() (*initramfs.Image, error) {
	im := initramfs.New()
	im.Arch = c.Kernel.Arch
	if err := im.AddInit(c.Init); err != nil {
		return nil, err
	}
	modules, err := im.AddModules(c.Kernel.ModulesDir, c.Modules)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", c.Kernel.Name, err)
	}
	if c.Kernel.Config != "" { // libbpf reads it there
		if err := im.AddFile("/boot/config-"+c.Kernel.Release, c.Kernel.Config); err != nil {
			return nil, err
		}
	}
	if err := c.addScheduler(im); err != nil {
		return nil, err
	}
	for _, program := range append(append([]string{}, c.Tools...), c.Loads...) {
		if err := im.AddProgram(program); err != nil {
			return nil, err
		}
	}
	for _, f := range c.Files {
		if err := im.AddFile(f.Guest, f.Host); err != nil {
			return nil, err
		}
	}
	plan := c.Plan
	plan.Modules = modules
	if plan.Links, err = c.addBusybox(im); err != nil {
		return nil, err
	}
	if plan.Row.Scheduler != "" && plan.Row.Scheduler != "kernel" && plan.Row.Scheduler != "rota" {
		plan.Row.Scheduler = guestCommand(plan.Row.Scheduler)
	}
	text, err := plan.Encode()
	if err != nil {
		return nil, err
	}
	return im, im.Add(guest.PlanPath, 0o644, text)
}

// addBusybox adds this machine's busybox, after all other programs. Where the guest
// could not run that, the kernel's comes in, and the guest makes the links to its
// applets: nobody here can ask it for their names.
func (c Cell) addBusybox(im *initramfs.Image) (linksAreMissing bool, err error) {
	switch {
	case c.Kernel.Arch.Name == "" || c.Kernel.Arch.Name == arch.Own().Name:
		return false, im.AddBusybox()
	case c.Kernel.Busybox != "":
		return true, im.AddProgram(c.Kernel.Busybox)
	case im.Has("/bin/busybox"):
		return true, nil
	}
	return false, fmt.Errorf("kernel %s: no busybox for %s came with it; give one that is static, and called busybox, with --tool", c.Kernel.Name, c.Kernel.Arch.Name)
}

func (c Cell) addScheduler(im *initramfs.Image) error {
	switch scheduler := c.Plan.Row.Scheduler; scheduler {
	case "", "kernel":
		return nil
	case "rota":
		if c.Rota == "" {
			return errors.New("scheduler rota: bin/rota is missing; build it with: make build")
		}
		if c.Plan.Row.Config != "" {
			if err := im.Add(guest.ConfigPath, 0o644, []byte(c.Plan.Row.Config)); err != nil {
				return err
			}
		}
		return im.AddProgram(c.Rota)
	default:
		return im.AddProgram(strings.Fields(scheduler)[0])
	}
}

// guestCommand is the scheduler's command line with the guest's path: the
// host's directories stay out of the machine.
func guestCommand(scheduler string) string {
	words := strings.Fields(scheduler)
	words[0] = "/bin/" + filepath.Base(words[0])
	return strings.Join(words, " ")
}
