package guest

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"rota/lab/arch"
)

// openResults opens the results port raw: what is written leaves unchanged.
func openResults() (*os.File, error) {
	f, err := os.OpenFile("/dev/"+arch.Own().Results, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("results port: %w", err)
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err == nil {
		t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
		t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B115200
		err = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("results port: set raw mode: %w", err)
	}
	return f, nil
}

// drain waits until the port has sent everything.
func drain(f *os.File) { unix.IoctlSetInt(int(f.Fd()), unix.TCSBRK, 1) }
