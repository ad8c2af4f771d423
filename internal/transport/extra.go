package transport

// extra is what few queue pairs have: all others have none, and stay small.
type extra struct {
	bucket *bucket  // nil: its program does not limit its rate
	echo   *echo    // nil: it need not know what it has sent itself
	tags   *tagging // with an SRQ that matches tags
}

// bucketOf returns by what the program of q limits its rate; nil: it does not.
func (q *QP) bucketOf() *bucket {
	if q.extra == nil {
		return nil
	}
	return q.extra.bucket
}

// echoOf returns by what q knows what it has sent itself; nil: it need not.
func (q *QP) echoOf() *echo {
	if q.extra == nil {
		return nil
	}
	return q.extra.echo
}

// tagsOf returns how q matches tags; nil: it does not.
func (q *QP) tagsOf() *tagging {
	if q.extra == nil {
		return nil
	}
	return q.extra.tags
}

// extras returns what q has besides, for change.
func (q *QP) extras() *extra {
	if q.extra == nil {
		q.extra = &extra{}
	}
	return q.extra
}

// listen lets q know what it sends itself.
func (q *QP) listen() *echo {
	x := q.extras()
	if x.echo == nil {
		x.echo = &echo{}
	}
	return x.echo
}
