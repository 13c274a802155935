package binder

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// What can become of a call, beside an answer.
var (
	// ErrDead: the server has ended, before the call or during it.
	ErrDead = errors.New("the server is dead (BR_DEAD_REPLY)")
	// ErrFailed: the driver could not deliver the call.
	ErrFailed = errors.New("the driver refused it (BR_FAILED_REPLY)")
	// ErrFrozen: the server is frozen.
	ErrFrozen = errors.New("the server is frozen (BR_FROZEN_REPLY)")
	// ErrFull: the server has no room for what it receives.
	ErrFull = errors.New("the receiver's memory is full (BR_FAILED_REPLY)")
	// ErrTooLarge: a parcel that no receiver has room for.
	ErrTooLarge = errTooLarge
	// ErrClosed: the device was closed while a thread waited in it.
	ErrClosed = errors.New("the device is closed")
)

// StatusError is the answer of a server that could not do what was asked.
type StatusError struct{ Status int32 }

func (e *StatusError) Error() string {
	switch e.Status {
	case statusUnknown:
		return "the server knows no such service or code"
	case statusNoName:
		return "the service manager knows no such name; is its server running?"
	case statusTaken:
		return "the service manager has this name already"
	}
	return fmt.Sprintf("the server answered with status %d", e.Status)
}

// Statuses of our servers.
const (
	statusBad     = -1
	statusUnknown = -2
	statusNoName  = -3
	statusTaken   = -4
)

// refused puts an answer that ends a call without a reply into words.
func (t *Thread) refused(code uint32) error {
	switch code {
	case brDeadReply:
		return ErrDead
	case brFrozenReply:
		return ErrFrozen
	}
	switch errno := t.device.driver.lastError(); errno {
	case 0:
		return ErrFailed
	case unix.ENOSPC:
		return ErrFull
	default:
		return fmt.Errorf("%w: %w", ErrFailed, errno)
	}
}
