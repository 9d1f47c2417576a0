module github.com/tidemark-go/tidemark/examples

go 1.26.0

replace github.com/tidemark-go/tidemark => ../
