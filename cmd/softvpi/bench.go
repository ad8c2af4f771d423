package main

import "errors"

type benchCmd struct{}

func (benchCmd) Run(s *session) error { return errors.New("not built yet") }
