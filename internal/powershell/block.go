package powershell

import "errors"

// run runs a block for a value as $_. What returns in it leaves it alone.
func (in *Interpreter) run(b *Block, it any, out emit) error {
	if !b.code.plain {
		return errors.New("a block with param, begin, process or end is only understood behind & or a dot")
	}
	return in.underscore(it, func() error {
		_, err := in.statements(b.code.end, out)
		return returned(err)
	})
}

// returned is the error of a body that return may leave.
func returned(err error) error {
	var j *jumped
	if errors.As(err, &j) && j.word == "return" {
		return nil
	}
	return err
}

// underscore does something with a value as $_.
func (in *Interpreter) underscore(it any, do func() error) error {
	s := in.scope
	old, had := s.variables["_"]
	s.variables["_"] = &slot{value: it}
	err := do()
	if had {
		s.variables["_"] = old
	} else {
		delete(s.variables, "_")
	}
	return err
}
