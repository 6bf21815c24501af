module tierbench.io/pause

go 1.26
