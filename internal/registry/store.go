package registry

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/softvpi/softvpi/internal/os/wholefile"
)

// FileName is the name of the registry's file in the state directory.
const FileName = "registry.db"

// ErrLocked says that another process has the registry file open.
var ErrLocked = errors.New("another process has it open")

// errCorrupt says that a file does not contain what was written.
var errCorrupt = errors.New("corrupt")

const (
	openTimeout = 2 * time.Second
	version     = 1
)

// The file has three buckets. "meta" holds the version. "keys" has an entry for every key: the folded
// names of its path, each ended by a zero byte; its value is the key's name as written. "values" has an
// entry for every value: the path in the same form, a zero byte, and the folded name; its value is the
// record of encodeValue. The entries are in the order of the tree, and a subtree is one range of both
// buckets. Every value of an entry ends in a CRC-32C that also covers the entry's key, because bbolt
// itself checks only its meta pages.
var (
	metaBucket   = []byte("meta")
	keysBucket   = []byte("keys")
	valuesBucket = []byte("values")
	versionEntry = []byte("version")
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
)

// store is the registry's file.
type store struct {
	path string
	db   *bbolt.DB
	info fs.FileInfo // as of the last transaction
	tx   int         // its number
}

// Open opens the registry in directory dir, and creates it if there is none. A file that cannot be
// understood is renamed and replaced by a new one (SetAside). If the directory is not writable, existing
// data is read and changes are kept in memory only (Volatile). Errors are *StoreError: ErrLocked if
// another process has the file open, or a system error.
func Open(dir string) (*Registry, error) {
	path := filepath.Join(dir, FileName)
	r := &Registry{}
	root, st, err := open(path)
	if errors.Is(err, errCorrupt) {
		cause := err
		r.cause = cause
		if r.aside, err = setAside(path); err == nil {
			root, st, err = open(path)
		}
		if readOnly(err) { // neither set aside nor replaced
			v := NewVolatile(fmt.Sprintf("%s is unreadable (%v) and cannot be replaced: %v", path, cause, err))
			return v, nil
		}
	}
	if readOnly(err) {
		return openReadOnly(path, err)
	}
	if err != nil {
		return nil, &StoreError{path, err}
	}
	r.store = st
	r.root.Store(root)
	return r, nil
}

// readOnly reports whether err says that the location is not writable.
func readOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// openReadOnly reads the file, if it exists, into a registry in memory.
func openReadOnly(path string, cause error) (*Registry, error) {
	r := NewVolatile(fmt.Sprintf("%s cannot be written to: %v", path, cause))
	if err := verifyFile(path); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return r, nil
	} else if err != nil {
		r.volatile += "; what is there is unreadable: " + err.Error()
		return r, nil
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return nil, &StoreError{path, explain(err)}
	}
	defer db.Close()
	root, _, err := load(db)
	if err != nil {
		r.volatile += "; what is there is unreadable: " + err.Error()
		return r, nil
	}
	r.root.Store(root)
	return r, nil
}

// setAside renames the file so that the next one does not overwrite it.
func setAside(path string) (string, error) {
	to, err := freeName(path)
	if err != nil {
		return "", err
	}
	if err := os.Rename(path, to); err != nil {
		return "", err
	}
	return to, wholefile.SyncDirectory(filepath.Dir(path))
}

// freeName returns a name for a file that is set aside.
func freeName(path string) (string, error) {
	for i := range 1000 {
		to := fmt.Sprintf("%s.corrupt-%d", path, i+1)
		if _, err := os.Lstat(to); err != nil {
			return to, nil
		}
	}
	return "", fmt.Errorf("%w: and a thousand such files exist already", errCorrupt)
}

// open opens or creates the file and reads it.
func open(path string) (*node, *store, error) {
	err := verifyFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = create(path)
	}
	if err != nil {
		return nil, nil, err
	}
	db, err := bbolt.Open(path, 0o600, options)
	if err != nil {
		return nil, nil, explain(err)
	}
	s := &store{path: path, db: db}
	var root *node
	if err := guarded(func() (err error) { root, s.tx, err = load(db); return err }); err != nil {
		if !errors.Is(err, errDamaged) {
			db.Close()
		}
		return nil, nil, err
	}
	return root, s, s.note()
}

var options = &bbolt.Options{Timeout: openTimeout, NoStatistics: true}

// prepare writes a complete file beside the one at path, under a name that it returns.
func prepare(path string, root *node) (temporary string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), FileName+".new-*")
	if err != nil {
		return "", err
	}
	f.Close()
	db, err := bbolt.Open(f.Name(), 0o600, options)
	if err == nil {
		err = errors.Join(initialize(db, root), db.Close())
	}
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// create first writes the complete file under another name, so that no partial one is ever found.
func create(path string) error {
	temporary, err := prepare(path, emptyTree())
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	if err := os.Link(temporary, path); errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	} else if err != nil { // no hard links here
		if err := os.Rename(temporary, path); err != nil {
			return err
		}
	}
	return wholefile.SyncDirectory(filepath.Dir(path))
}

func explain(err error) error {
	if errors.Is(err, bolterrors.ErrTimeout) {
		return ErrLocked
	}
	return err
}

func (s *store) close() error { return s.db.Close() }

// load reads the tree, and the number of the last transaction.
func load(db *bbolt.DB) (root *node, last int, err error) {
	err = db.View(func(tx *bbolt.Tx) error {
		last = tx.ID()
		meta, keys, values := tx.Bucket(metaBucket), tx.Bucket(keysBucket), tx.Bucket(valuesBucket)
		if meta == nil || keys == nil || values == nil {
			return fmt.Errorf("%w: a bucket is missing", errCorrupt)
		}
		v, err := unseal(versionEntry, meta.Get(versionEntry))
		if err != nil {
			return err
		}
		if len(v) != 1 || v[0] != version {
			return fmt.Errorf("its format has version %d; this program knows version %d", v, version)
		}
		b := new(batch)
		root = &node{batch: b}
		if err := keys.ForEach(func(k, v []byte) error { return loadKey(b, root, k, v) }); err != nil {
			return err
		}
		return values.ForEach(func(k, v []byte) error { return loadValue(b, root, k, v) })
	})
	return root, last, err
}

func loadKey(b *batch, root *node, k, sealed []byte) error {
	name, err := unseal(k, sealed)
	if err != nil {
		return err
	}
	names := strings.Split(strings.TrimSuffix(string(k), "\x00"), "\x00")
	last := len(names) - 1
	if len(names) > maxDepth || checkName(string(name)) != "" || fold(string(name)) != names[last] {
		return fmt.Errorf("%w: key entry %q", errCorrupt, k)
	}
	if root.at(names[:last]) == nil {
		return fmt.Errorf("%w: key entry %q has no parent", errCorrupt, k)
	}
	names[last] = string(name)
	root.with(b, names, true, func(*node) {})
	return nil
}

func loadValue(b *batch, root *node, k, sealed []byte) error {
	path, folded, ok := bytes.Cut(k, []byte("\x00\x00"))
	record, err := unseal(k, sealed)
	if err != nil {
		return err
	}
	v, err := decodeValue(record)
	if !ok || err != nil || fold(v.Name) != string(folded) {
		return fmt.Errorf("%w: value entry %q", errCorrupt, k)
	}
	names := strings.Split(string(path), "\x00")
	if root.at(names) == nil {
		return fmt.Errorf("%w: value entry %q has no key", errCorrupt, k)
	}
	root.with(b, names, false, func(n *node) { n.set(v) })
	return nil
}

// at returns the key with these folded names.
func (n *node) at(folded []string) *node {
	for _, name := range folded {
		if n = n.children[name]; n == nil {
			return nil
		}
	}
	return n
}

func initialize(db *bbolt.DB, root *node) error {
	return db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{metaBucket, keysBucket, valuesBucket} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		if err := tx.Bucket(metaBucket).Put(versionEntry, seal(versionEntry, []byte{version})); err != nil {
			return err
		}
		if err := putKeys(tx.Bucket(keysBucket), root, nil); err != nil {
			return err
		}
		return putValues(tx.Bucket(valuesBucket), root, nil)
	})
}

// putKeys writes the keys below n.
func putKeys(keys *bbolt.Bucket, n *node, prefix []byte) error {
	for at, c := range n.children {
		k := append(append(bytes.Clone(prefix), at...), 0)
		if err := keys.Put(k, seal(k, []byte(c.name))); err != nil {
			return err
		}
		if err := putKeys(keys, c, k); err != nil {
			return err
		}
	}
	return nil
}

// write makes the changes, which result in the tree next, in one transaction. If the file was damaged it is replaced by one
// with all of next.
func (s *store) write(changes []Change, next *node) (damage *Damage, err error) {
	err = s.intact()
	if err == nil {
		err = guarded(func() error { return s.update(changes) })
	}
	if err == nil {
		err = s.note()
	}
	if errors.Is(err, errDamaged) {
		damage = &Damage{Path: s.path, Cause: err}
		damage.Aside, err = s.renew(next)
	}
	if err != nil {
		return nil, &StoreError{s.path, fmt.Errorf("nothing was changed: %w", err)}
	}
	return damage, nil
}

func (s *store) update(changes []Change) error {
	next := s.tx + 1
	err := s.db.Update(func(tx *bbolt.Tx) error {
		if tx.ID() != next {
			return fmt.Errorf("%w: its last transaction is %d and was %d", errDamaged, tx.ID()-1, s.tx)
		}
		keys, values := tx.Bucket(keysBucket), tx.Bucket(valuesBucket)
		for i := range changes {
			if err := changes[i].write(keys, values); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.tx = next
	}
	return err
}

func (c *Change) write(keys, values *bbolt.Bucket) error {
	prefix, entry := c.Key.entry(), c.entry()
	switch c.Kind {
	case CreateKey:
		return createKey(keys, c.Key)
	case SetValue:
		if err := createKey(keys, c.Key); err != nil {
			return err
		}
		v := c.Value
		if old, err := unseal(entry, values.Get(entry)); err == nil {
			if o, err := decodeValue(old); err == nil {
				v.Name = o.Name
			}
		}
		return values.Put(entry, seal(entry, encodeValue(v)))
	case DeleteValue:
		return values.Delete(entry)
	case DeleteValues:
		return deleteRange(values, append(prefix, 0))
	default: // DeleteKey
		if err := deleteRange(values, prefix); err != nil {
			return err
		}
		return deleteRange(keys, prefix)
	}
}

// createKey writes the missing entries of the key and those above it.
func createKey(keys *bbolt.Bucket, p Path) error {
	var k []byte
	for _, name := range p.split() {
		k = append(append(k, fold(name)...), 0)
		if keys.Get(k) != nil {
			continue
		}
		if err := keys.Put(bytes.Clone(k), seal(k, []byte(name))); err != nil {
			return err
		}
	}
	return nil
}

func deleteRange(b *bbolt.Bucket, prefix []byte) error {
	var all [][]byte // a cursor may skip entries if it deletes
	c := b.Cursor()
	for k, _ := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		all = append(all, bytes.Clone(k))
	}
	for _, k := range all {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
