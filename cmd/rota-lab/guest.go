package main

import (
	"os"
	"strconv"

	"rota/lab/arch"
	"rota/lab/guest"
	"rota/lab/scenario"
)

// Names that the commands exec and shell give in a plan; no scenario can have
// them.
const (
	execPlan  = "!exec"
	shellPlan = "!shell"
)

// exitEvent carries the exit code of exec's command line.
const exitEvent = "exit_code"

// guestFunction finds what a plan's scenario does in the guest.
func guestFunction(name string) (func(*guest.Guest) error, bool) {
	switch name {
	case execPlan:
		return execInGuest, true
	case shellPlan:
		return shellInGuest, true
	}
	s, known := scenario.Find(name)
	return s.Run, known
}

// terminal is the console as a device that a person can be at.
func terminal() string { return "/dev/" + arch.Own().Console }

// execInGuest runs the plan's command line with its output on the console,
// which the host shows as it comes.
func execInGuest(g *guest.Guest) error {
	console, err := os.OpenFile(terminal(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer console.Close()
	p, err := g.Start(guest.Cmd{Path: "busybox", Args: []string{"sh", "-c", g.Command}, Stdout: console, Stderr: console})
	if err != nil {
		return err
	}
	out, _ := p.Wait() // its exit code is the caller's business
	g.Event(exitEvent, strconv.Itoa(out.Exit))
	return nil
}

// shellInGuest gives the terminal to an interactive shell until it ends.
func shellInGuest(g *guest.Guest) error {
	return g.Terminal(terminal(), "/bin/busybox", "sh", "-l")
}
