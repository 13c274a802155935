package binder

import "fmt"

// mapping is the memory that the driver puts what we receive into. The driver
// names places in it by their addresses.
type mapping struct {
	base   uint64
	memory []byte
}

// view is the memory at an address. What lies outside was not lent to the
// driver: nothing there is read.
func (m mapping) view(address, length uint64) ([]byte, error) {
	if length == 0 {
		return nil, nil
	}
	size := uint64(len(m.memory))
	if address < m.base || address-m.base > size || length > size-(address-m.base) {
		return nil, fmt.Errorf("the driver named %d bytes at %#x, which are not in the memory lent to it", length, address)
	}
	offset := address - m.base
	return m.memory[offset : offset+length : offset+length], nil
}
