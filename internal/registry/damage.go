package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/softvpi/softvpi/internal/os/wholefile"
	"go.etcd.io/bbolt"
)

// errDamaged says that the file is no longer as the store left it: another program has cut it, written to it, replaced or
// removed it.
var errDamaged = errors.New("another program has changed it")

// guarded runs fn, which reads the mapped file. bbolt trusts what it finds there: where the file was cut the processor
// faults, and elsewhere bbolt panics at the first thing that cannot be, or indexes with it. Both become errDamaged. The
// database must not be used any more then, not even to close it: its locks may be held.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			if e, ok := cause.(runtime.Error); ok {
				err = fmt.Errorf("%w: %w", errDamaged, e)
			} else {
				err = fmt.Errorf("%w: %v", errDamaged, cause)
			}
		}
	}()
	return fn()
}

// note remembers how the file is after a transaction of the store.
func (s *store) note() error {
	info, err := os.Stat(s.path)
	if err == nil {
		s.info = info
	}
	return err
}

// intact returns errDamaged if the file is plainly not the one that the store left: it cannot be read safely then.
func (s *store) intact() error {
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: it was removed", errDamaged)
	case err != nil:
		return err
	case !os.SameFile(info, s.info):
		return fmt.Errorf("%w: there is another file in its place", errDamaged)
	case info.Size() < s.info.Size():
		return fmt.Errorf("%w: it has %d bytes and had %d", errDamaged, info.Size(), s.info.Size())
	}
	return nil
}

// renew writes a whole registry to a new file, in place of one that was damaged, which is renamed if it is still there. The
// damaged one stays open and locked until the process ends.
func (s *store) renew(root *node) (aside string, err error) {
	temporary, err := prepare(s.path, root)
	if err != nil {
		return "", err
	}
	defer os.Remove(temporary)
	if _, err := os.Lstat(s.path); err == nil {
		if aside, err = keepAside(s.path); err != nil {
			return "", err
		}
	}
	if err := os.Rename(temporary, s.path); err != nil {
		return aside, err
	}
	if err := wholefile.SyncDirectory(filepath.Dir(s.path)); err != nil {
		return aside, err
	}
	_, fresh, err := open(s.path)
	if err != nil {
		return aside, err
	}
	*s = *fresh
	return aside, nil
}

// keepAside gives a damaged file another name. It keeps the former one too, where the system knows links, so that at no time
// there is no file.
func keepAside(path string) (string, error) {
	to, err := freeName(path)
	if err == nil && os.Link(path, to) == nil {
		return to, nil
	}
	return setAside(path)
}

// putValues writes the values at n and below it; prefix is the entry of its key.
func putValues(values *bbolt.Bucket, n *node, prefix []byte) error {
	for at, v := range n.values {
		entry := append(append(append([]byte(nil), prefix...), 0), at...)
		if err := values.Put(entry, seal(entry, encodeValue(v))); err != nil {
			return err
		}
	}
	for at, c := range n.children {
		if err := putValues(values, c, append(append(append([]byte(nil), prefix...), at...), 0)); err != nil {
			return err
		}
	}
	return nil
}
