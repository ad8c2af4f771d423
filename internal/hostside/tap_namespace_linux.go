package hostside

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netns"
)

// namedSpaces is where iproute2 has the network namespaces that have names (ip-netns(8)).
const namedSpaces = "/run/netns"

func openTAPIn(space, name string) (end End, err error) {
	err = inSpace(space, func() (err error) {
		end, err = openTAP(name)
		return err
	})
	return end, err
}

// inSpace calls do in a network namespace, and returns its error, or why the namespace is not there.
func inSpace(space string, do func() error) (err error) {
	if !strings.HasPrefix(space, "/") {
		space = filepath.Join(namedSpaces, space)
	}
	there, err := netns.GetFromPath(space)
	if err != nil {
		return fmt.Errorf("host: network namespace %s: %w", space, err)
	}
	defer there.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here, err := netns.Get()
	if err != nil {
		return fmt.Errorf("host: the driver's network namespace: %w", err)
	}
	defer here.Close()
	if err := netns.Set(there); err != nil {
		return fmt.Errorf("host: network namespace %s: %w", space, err)
	}
	defer func() {
		if back := netns.Set(here); back != nil {
			runtime.LockOSThread() // a thread that cannot go back ends with its goroutine
			err = errors.Join(err, back)
		}
	}()
	return do()
}
