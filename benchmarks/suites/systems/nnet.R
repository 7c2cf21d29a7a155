# nnet: one hidden layer of logistic units, a softmax, weight decay; prints seconds of two calls.
library(nnet)
given <- commandArgs(trailingOnly = TRUE)
folder <- given[1]; size <- as.integer(given[2]); maxit <- as.integer(given[3])
decay <- as.numeric(given[4]); k <- as.integer(given[5]); seed <- as.integer(given[6])
y <- readBin(file.path(folder, "y.bin"), "integer", 1e8)
X <- matrix(readBin(file.path(folder, "X.bin"), "double", 1e9), nrow = length(y))
fit <- function() {
  set.seed(seed)
  nnet(X, diag(k)[y + 1, ], size = size, softmax = TRUE, decay = decay, maxit = maxit, trace = FALSE,
       MaxNWts = 1e6)
}
on_wall <- Sys.getenv("CLOCK") == "wall"
clock <- function() if (on_wall) as.numeric(Sys.time()) else sum(proc.time()[1:2])
seconds <- sapply(1:2, function(i) {
  began <- clock(); model <<- fit(); clock() - began
})
writeBin(model$wts, file.path(folder, "W.bin"))
cat("[", paste(format(seconds, digits = 15), collapse = ", "), "]\n", sep = "")
