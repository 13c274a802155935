package binder

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestLook(t *testing.T) {
	device := &fstest.MapFile{Mode: fs.ModeDevice | fs.ModeCharDevice}
	file := &fstest.MapFile{}
	binderfs := &fstest.MapFile{Data: []byte("nodev\tsysfs\nnodev\tbinder\n")}
	module := func(more fstest.MapFS) fstest.MapFS {
		more["sys/module/binder_linux/x"] = file
		more["sys/kernel/btf/binder_linux"] = file
		return more
	}
	for name, test := range map[string]struct {
		tree    fstest.MapFS
		driver  string
		devices []string
		fix     string
	}{
		"nothing":     {fstest.MapFS{}, "", nil, "CONFIG_ANDROID_BINDER_IPC"},
		"not loaded":  {fstest.MapFS{"lib/modules/6.18/kernel/drivers/android/binder_linux.ko.xz": file}, "", nil, "modprobe binder_linux devices="},
		"complete":    {module(fstest.MapFS{"dev/binder": device, "dev/hwbinder": device, "dev/nobinder": file}), "module binder_linux", []string{"/dev/binder", "/dev/hwbinder"}, ""},
		"one device":  {module(fstest.MapFS{"dev/binder": device}), "module binder_linux", []string{"/dev/binder"}, "modprobe.d"},
		"no BTF":      {fstest.MapFS{"sys/module/binder_linux/x": file, "dev/binder": device, "dev/hwbinder": device}, "module binder_linux", []string{"/dev/binder", "/dev/hwbinder"}, "BTF"},
		"not mounted": {fstest.MapFS{"sys/module/binder/x": file, "sys/kernel/btf/vmlinux": file, "proc/filesystems": binderfs}, "built in", nil, "mount -t binder"},
		"mounted": {fstest.MapFS{"sys/module/binder/x": file, "sys/kernel/btf/vmlinux": file, "proc/filesystems": binderfs,
			"dev/binderfs/binder": device, "dev/binderfs/binder-control": device}, "built in", []string{"/dev/binderfs/binder"}, ""},
	} {
		p := Look(test.tree, "6.18")
		if p.Driver != test.driver || !slices.Equal(p.Devices, test.devices) || (p.Fix == "") != (test.fix == "") || !strings.Contains(p.Fix, test.fix) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
