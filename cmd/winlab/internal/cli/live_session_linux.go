package cli

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// newSession keeps the terminal's signals from a program in the background.
func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// openTerminal makes a pseudo-terminal of the size of another one.
func openTerminal(like *os.File) (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(ours.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		_ = ours.Close()
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		_ = ours.Close()
		return nil, nil, err
	}
	theirs, err = os.OpenFile(ptsName(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		_ = ours.Close()
		return nil, nil, err
	}
	sameSize(ours, like)
	return ours, theirs, nil
}

func ptsName(n int) string {
	const digits = "0123456789"
	if n < 10 {
		return "/dev/pts/" + digits[n:n+1]
	}
	return ptsName(n/10) + digits[n%10:n%10+1]
}

// sameSize gives a terminal the size of another one.
func sameSize(to, like *os.File) {
	if size, err := unix.IoctlGetWinsize(int(like.Fd()), unix.TIOCGWINSZ); err == nil {
		_ = unix.IoctlSetWinsize(int(to.Fd()), unix.TIOCSWINSZ, size)
	}
}

// resized is the signal of a terminal whose size has changed.
const resized = unix.SIGWINCH

// rawMode hands every key of a terminal on at once, until restore.
func rawMode(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	old, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	raw := *old
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &raw); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, old) }, nil
}
