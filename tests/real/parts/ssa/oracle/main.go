// Answers applies and updates with the Go libraries that a server uses.
//
// Reads one request a line from standard input and writes one answer a line.
// The first line maps names to the spec.versions of a CustomResourceDefinition,
// or to null for a kind without a schema. With a folder of OpenAPI v3 documents
// as argument, the name "built-in" stands for all kinds in them.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
)

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := bufio.NewWriter(os.Stdout)
	if !in.Scan() {
		log.Fatal("no kinds")
	}
	var definitions map[string]json.RawMessage
	if err := json.Unmarshal(in.Bytes(), &definitions); err != nil {
		log.Fatal(err)
	}
	kinds := map[string]kind{}
	for name, versions := range definitions {
		kinds[name] = custom(versions)
	}
	if len(os.Args) > 1 {
		kinds["built-in"] = builtIn(os.Args[1])
	}
	for in.Scan() {
		var r request
		if err := r.read(in.Bytes()); err != nil {
			log.Fatal(err)
		}
		reply, err := json.Marshal(r.answer(kinds[r.Kind]))
		if err != nil {
			log.Fatal(err)
		}
		out.Write(append(reply, '\n'))
		if err := out.Flush(); err != nil {
			log.Fatal(err)
		}
	}
}
