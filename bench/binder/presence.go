package binder

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Presence is what a machine has of binder.
type Presence struct {
	Driver  string   // "module binder_linux", "built in", or "" for none
	Devices []string // such as "/dev/binder"
	BTF     bool     // the driver's types are described, for programs that watch it
	Fix     string   // how to get what is missing, "" when all is there
}

// wanted are the devices that the benches use, modprobe line and all.
var wanted = []string{"/dev/binder", "/dev/hwbinder"}

const devicesParameter = "devices=binder,hwbinder,vndbinder"

// Look looks for binder below root, the root of the file system; release is the
// kernel's, as uname -r.
func Look(root fs.FS, release string) Presence {
	there := func(name string) bool {
		_, err := fs.Stat(root, name)
		return err == nil
	}
	p := Presence{}
	switch {
	case there("sys/module/binder_linux"):
		p.Driver, p.BTF = "module binder_linux", there("sys/kernel/btf/binder_linux")
	case there("sys/module/binder"):
		p.Driver, p.BTF = "built in", there("sys/kernel/btf/vmlinux")
	}
	p.Devices = devices(root)
	p.Fix = p.fix(root, release)
	return p
}

// devices lists them; binderfs holds more than devices.
func devices(root fs.FS) (found []string) {
	for _, dir := range []string{"dev", "dev/binderfs"} {
		entries, err := fs.ReadDir(root, dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), "binder") && e.Type()&fs.ModeCharDevice != 0 {
				found = append(found, "/"+path.Join(dir, e.Name()))
			}
		}
	}
	return found
}

func (p Presence) fix(root fs.FS, release string) string {
	missing := slices.ContainsFunc(wanted, func(d string) bool { return !slices.Contains(p.Devices, d) })
	switch {
	case p.Driver == "" && hasModule(root, release):
		return "load the driver with: modprobe binder_linux " + devicesParameter
	case p.Driver == "":
		return "boot a kernel built with CONFIG_ANDROID_BINDER_IPC (Debian: any but its cloud kernels)"
	case len(p.Devices) == 0 && hasBinderfs(root):
		return "mount its devices with: mount -t binder binder /dev/binderfs"
	case missing && p.Driver != "built in" && !hasBinderfs(root):
		return "the driver keeps its devices until the machine restarts; put \"options binder_linux " + devicesParameter +
			"\" into /etc/modprobe.d/binder.conf and restart it"
	case !p.BTF:
		return "boot a kernel built with CONFIG_DEBUG_INFO_BTF_MODULES"
	}
	return ""
}

// hasModule tells whether the kernel came with the driver as a module.
func hasModule(root fs.FS, release string) bool {
	for _, dir := range []string{"lib/modules", "usr/lib/modules"} {
		found, err := fs.Glob(root, path.Join(dir, release, "kernel/drivers/android/binder_linux.ko*"))
		if err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

func hasBinderfs(root fs.FS) bool {
	text, err := fs.ReadFile(root, "proc/filesystems")
	return err == nil && slices.Contains(strings.Fields(string(text)), "binder")
}
