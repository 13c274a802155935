package guest

import (
	"os"
	"os/exec"
	"syscall"
)

// Terminal runs a program for a person at a terminal, as the leader of a
// session that the terminal controls, SCHED_OTHER. It returns when the program
// has ended; its exit code is the person's business.
func (g *Guest) Terminal(port, program string, args ...string) error {
	tty, err := os.OpenFile(port, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer tty.Close()
	cmd := exec.Command("/proc/self/exe", append([]string{stageArg, "{}", program}, args...)...)
	cmd.Args[0] = "/init"
	cmd.Dir = "/root"
	cmd.Env = append(baseEnv(), "TERM=vt100", `PS1=rota-lab:\w# `)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		return err
	}
	cmd.Wait()
	return nil
}
