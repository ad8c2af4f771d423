package osmtest

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// shortLease is the lease that is to expire.
const shortLease = 3 * time.Second

// services registers services, checks which queries find them, lets a lease expire and withdraws them.
func (t *test) services() error {
	const (
		id    = mad.ServiceComponentID
		name  = mad.ServiceComponentName
		lease = mad.ServiceComponentLease
		key   = mad.ServiceComponentKey
		whole = id | mad.ServiceComponentGID | mad.ServiceComponentPKey | lease | key | name
	)
	service := func(n int, seconds uint32) mad.ServiceRecord {
		r := mad.ServiceRecord{ID: uint64(os.Getpid())<<32 | uint64(n), GID: t.ownGID(), PKey: ib.PKeyDefault, Lease: seconds,
			Key: [16]byte{byte(n), 1}}
		copy(r.Name[:63], fmt.Sprintf("osmt.srvc.%d.%d", n, os.Getpid()))
		return r
	}
	a, b, c := service(1, 0xffffffff), service(2, uint32(shortLease/time.Second)), service(3, 0xffffffff)
	changed := a
	changed.Lease = 600
	mixed := a
	mixed.Name = b.Name
	set, get, table, withdraw := uint8(mad.MethodSet), uint8(mad.MethodGet), uint8(mad.MethodGetTable), uint8(mad.MethodDelete)
	const attr = mad.AttrServiceRecord
	do := func(name string, method uint8, mask uint64, r mad.ServiceRecord, status uint16) rule {
		return rule{name: name, method: method, attr: attr, mask: mask, data: r.Append(nil), status: status}
	}
	if err := t.checkAll([]rule{
		do("register", set, whole, a, 0), do("register one with a lease", set, whole, b, 0),
		do("register without a P_Key", set, whole&^mad.ServiceComponentPKey, c, 0),
		do("register again on other terms", set, whole, changed, 0),
		do("get by name", get, name, a, 0), do("get by ID", get, id, a, 0), do("get by both", get, id|name, a, 0),
		do("get by the ID of one and the name of another", get, id|name, mixed, mad.SANoRecords),
		do("get one whose lease runs", get, name, b, 0),
		{name: "get all", method: table, attr: attr, some: true},
	}); err != nil {
		return err
	}
	if err := sleep(t.ctx, shortLease+1500*time.Millisecond); err != nil {
		return err
	}
	return t.checkAll([]rule{
		do("get one whose lease is over", get, name, b, mad.SANoRecords),
		do("withdraw", withdraw, name, a, 0), do("get what was withdrawn", get, name, a, mad.SANoRecords),
		do("withdraw what is not there", withdraw, name, a, mad.SANoRecords), do("withdraw by ID", withdraw, id, c, 0),
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
