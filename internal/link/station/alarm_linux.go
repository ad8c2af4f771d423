package station

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Alarm wakes the owner of a link when its Set is due: its descriptor becomes readable then.
type Alarm struct{ fd int }

// NewAlarm makes an alarm that is not set.
func NewAlarm() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &Alarm{fd}, nil
}

// Descriptor is readable once the time is up, until Hush.
func (a *Alarm) Descriptor() int { return a.fd }

// Arm sets the time; negative: none. Any goroutine may call it.
func (a *Alarm) Arm(after time.Duration) {
	var t unix.ItimerSpec // 0 means none
	if after >= 0 {
		t.Value = unix.NsecToTimespec(max(int64(after), 1))
	}
	_ = unix.TimerfdSettime(a.fd, 0, &t, nil) // it fails for invalid times only
}

// Hush ends the descriptor's being readable.
func (a *Alarm) Hush() {
	var b [8]byte
	_, _ = unix.Read(a.fd, b[:]) // EAGAIN: the time is not up
}

// Close frees the descriptor.
func (a *Alarm) Close() { unix.Close(a.fd) }
