package initramfs

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// AddBusybox copies the host's busybox and links every applet whose name is
// still free: add it last, real tools win.
func (im *Image) AddBusybox() error {
	path, err := FindProgram("busybox")
	if err != nil {
		return err
	}
	if err := im.addProgramAs("/bin/busybox", path); err != nil {
		return err
	}
	list, err := exec.Command(path, "--list").Output()
	if err != nil {
		return fmt.Errorf("%s --list: %w", path, err)
	}
	for _, applet := range strings.Fields(string(list)) {
		if applet == filepath.Base(applet) {
			im.Link("/bin/"+applet, "busybox")
		}
	}
	return nil
}
