package guest

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// seedRandom gives the kernel as much to make random numbers of as it asks for, the same in
// every run. A real machine has it within a second; a guest without devices and without RDRAND
// mostly never had it, and until then all random numbers cost more, which the kernel needs for
// each slab of memory: docs/decisions/0024-random.md.
func seedRandom() error {
	// struct rand_pool_info with a buffer.
	pool := struct {
		bits, size int32
		bytes      [64]byte
	}{bits: 512, size: 64}
	for i := range pool.bytes {
		pool.bytes[i] = byte(i)
	}
	fd, err := unix.Open("/dev/random", unix.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open /dev/random: %w", err)
	}
	defer unix.Close(fd)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.RNDADDENTROPY, uintptr(unsafe.Pointer(&pool))); errno != 0 {
		return fmt.Errorf("add entropy to /dev/random: %w", errno)
	}
	var one [1]byte
	if _, err := unix.Getrandom(one[:], unix.GRND_NONBLOCK); err != nil {
		return fmt.Errorf("random numbers are not ready with %d bits: %w", pool.bits, err)
	}
	return nil
}
