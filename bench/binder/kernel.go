package binder

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of linux/android/binder.h on 64-bit machines.
const (
	binderWriteRead        = 0xc0306201
	binderSetContextMgr    = 0x40046207
	binderThreadExit       = 0x40046208
	binderVersion          = 0xc0046209
	binderSetContextMgrExt = 0x4018620d
	binderGetExtendedError = 0xc00c6211
)

// protocolVersion is what 64-bit processes speak.
const protocolVersion = 8

// writeRead is struct binder_write_read.
type writeRead struct {
	writeSize, writeConsumed, writeBuffer uint64
	readSize, readConsumed, readBuffer    uint64
}

// kernel is the driver of the running kernel.
type kernel struct {
	fd     uintptr
	memory []byte
}

// openKernel opens the device past os.OpenFile, which would hand it to Go's
// poller.
func openKernel(path string) (*kernel, mapping, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, mapping{}, openFault(path, err)
	}
	k := &kernel{fd: uintptr(fd)}
	var version int32
	if err := k.control(binderVersion, unsafe.Pointer(&version)); err != nil {
		unix.Close(fd)
		return nil, mapping{}, fmt.Errorf("%s: not a binder device: %w", path, err)
	}
	if version != protocolVersion {
		unix.Close(fd)
		return nil, mapping{}, fmt.Errorf("%s: speaks version %d of the protocol; version %d is known", path, version, protocolVersion)
	}
	k.memory, err = unix.Mmap(fd, 0, MapBytes, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		unix.Close(fd)
		return nil, mapping{}, fmt.Errorf("%s: lend it memory: %w", path, err)
	}
	return k, mapping{base: uint64(uintptr(unsafe.Pointer(&k.memory[0]))), memory: k.memory}, nil
}

func openFault(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such device; load the driver with: modprobe binder_linux devices=binder,hwbinder,vndbinder", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: not permitted; run as root", path)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// exchange is one ioctl. It does not tell Go that it waits, which would cost
// more than it is worth here: see Quiet.
func (k *kernel) exchange(write, read []byte) (int, int, error) {
	wr := writeRead{writeSize: uint64(len(write)), readSize: uint64(len(read))}
	wr.writeBuffer, wr.readBuffer = address(write), address(read)
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, k.fd, binderWriteRead, uintptr(unsafe.Pointer(&wr)))
	runtime.KeepAlive(write)
	runtime.KeepAlive(read)
	written, filled := int(min(wr.writeConsumed, wr.writeSize)), int(min(wr.readConsumed, wr.readSize))
	if errno != 0 {
		return written, filled, errno
	}
	return written, filled, nil
}

// address is where a buffer lies. Go does not move what is on its heap; the
// caller keeps it alive.
func address(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(&b[0])))
}

func (k *kernel) control(request uintptr, arg unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, k.fd, request, uintptr(arg))
	if errno != 0 {
		return errno
	}
	return nil
}

// extendedError is struct binder_extended_error.
type extendedError struct {
	id, command uint32
	param       int32
}

func (k *kernel) lastError() unix.Errno {
	var e extendedError
	if k.control(binderGetExtendedError, unsafe.Pointer(&e)) != nil || e.param >= 0 {
		return 0
	}
	return unix.Errno(-e.param)
}

// becomeManager makes the manager's node follow its caller's nice value, as
// far as the kernel knows of that.
func (k *kernel) becomeManager() error {
	node := flatObject{kind: typeBinder, flags: NodeFlags}
	err := k.control(binderSetContextMgrExt, unsafe.Pointer(&node))
	if errors.Is(err, unix.EINVAL) { // before 5.0
		var none int32
		err = k.control(binderSetContextMgr, unsafe.Pointer(&none))
	}
	return err
}

func (k *kernel) exitThread() error {
	var none int32
	return k.control(binderThreadExit, unsafe.Pointer(&none))
}

func (k *kernel) close() error {
	return errors.Join(unix.Munmap(k.memory), unix.Close(int(k.fd)))
}
