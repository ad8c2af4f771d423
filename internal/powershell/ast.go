package powershell

// Script is a script that was parsed.
type Script struct {
	code    *code
	classes map[string]*class // by their names in lower case
	args    bool              // it has $args somewhere
}

// A statement is one of the types below.
type statement interface{ place() Position }

type (
	// pipeline is one or more commands or an expression, whose results go from each to the next.
	pipeline struct {
		Position
		elements  []element
		redirects []redirects // one for each element
	}
	// assignment sets a variable, a property or an element.
	assignment struct {
		Position
		target   expression
		operator string // =, +=, -=, *=, /=, %=
		value    statement
	}
	ifStatement struct {
		Position
		conditions []statement
		bodies     [][]statement // one for each condition, and that of else
	}
	foreachStatement struct {
		Position
		label    string
		variable *variable
		list     statement
		body     []statement
	}
	whileStatement struct {
		Position
		label     string
		condition statement
		after     bool // do: the body runs once before the condition is asked
		until     bool // it ends when the condition holds
		body      []statement
	}
	forStatement struct {
		Position
		label                  string
		first, condition, next statement // nil: none
		body                   []statement
	}
	switchStatement struct {
		Position
		label      string
		way        string // exact, wildcard or regex
		heed       bool   // the case of letters
		of         statement
		clauses    []clause
		hasDefault bool
		otherwise  []statement // the body of default
	}
	functionStatement struct {
		Position
		name  string
		scope string // in which it is; empty: that of what runs
		code  *code
	}
	tryStatement struct {
		Position
		body       []statement
		catches    []catch
		hasFinally bool
		finally    []statement
	}
	// trapStatement stands before the other statements of its block, wherever it was written.
	trapStatement struct {
		Position
		catch
	}
	// classDefinition is where a class or an enumeration stands, which the script has from its beginning on.
	classDefinition struct{ Position }
	throwStatement  struct {
		Position
		value statement // nil: none
	}
	jump struct { // break, continue, return, exit
		Position
		word  string
		label expression // of break and continue; nil: none
		// method says that it is the return of a method, whose value is not emitted.
		method bool
		value  statement // nil: none
	}
)

// clause is a condition of a switch with its body.
type clause struct {
	condition expression
	body      []statement
}

// catch is a block for errors of some types of exceptions, or for all.
type catch struct {
	types []string // full names; empty: all
	body  []statement
}

// An element of a pipeline is a command or an expression.
type element interface{ place() Position }

type command struct {
	Position
	name expression // a word, or what follows &
	dot  bool       // it follows a dot, and runs in the scope in which it stands
	args []argument
}

// argument is a parameter's name, with a value if a colon follows it, or a value.
type argument struct {
	Position
	parameter string // without its hyphen; empty: a value
	value     expression
	splat     string // @name: the parameters in a variable
}

// An expression is one of the types below.
type expression interface{ place() Position }

type (
	literal struct {
		Position
		value any
		word  string // as it is written if it is a word without quotes
	}
	// interpolated is a string in double quotes: its parts one after the other.
	interpolated struct {
		Position
		parts []expression
	}
	variable struct {
		Position
		name  string // in lower case
		scope string // env, global, script, local or private; empty: none is named
	}
	array struct {
		Position
		items []expression
	}
	arrayOf struct { // @( )
		Position
		body []statement
	}
	subexpression struct { // $( ) and ( )
		Position
		body     []statement
		grouping bool // ( )
	}
	hash struct {
		Position
		keys   []expression
		values []statement
	}
	block struct {
		Position
		code *code
	}
	member struct {
		Position
		of     expression
		name   expression
		static bool
		call   bool
		args   []expression
	}
	index struct {
		Position
		of, at expression
	}
	unary struct {
		Position
		operator string
		of       expression
	}
	binary struct {
		Position
		operator    string
		left, right expression
	}
	cast struct { // [int] $x
		Position
		name string
		of   expression // nil: the type itself
	}
	step struct { // $i++, $i--, ++$i, --$i
		Position
		of     expression
		by     int64
		before bool
	}
)

func (p Position) place() Position { return p }
