# glmnet along given strengths, weights of the last; prints seconds of a first call and means of ten later ones.
suppressMessages(library(glmnet))
given <- commandArgs(trailingOnly = TRUE)
folder <- given[1]; thresh <- as.numeric(given[2])
k <- as.integer(given[3]); intercept <- as.logical(given[4])
lambdas <- readBin(file.path(folder, "lambda.bin"), "double", 1e5)
y <- readBin(file.path(folder, "y.bin"), "integer", 1e8)
X <- matrix(readBin(file.path(folder, "X.bin"), "double", 1e9), nrow = length(y))
family <- if (k == 2) "binomial" else "multinomial"
fit <- function() {
  glmnet(X, factor(y), family = family, lambda = lambdas, thresh = thresh, standardize = FALSE,
         intercept = intercept, maxit = 1e7)
}
on_wall <- Sys.getenv("CLOCK") == "wall"
clock <- function() if (on_wall) as.numeric(Sys.time()) else sum(proc.time()[1:2])
seconds <- sapply(1:4, function(i) {
  times <- if (i == 1) 1 else 10
  began <- clock(); for (j in 1:times) model <<- fit(); (clock() - began) / times
})
found <- coef(model, s = lambdas[length(lambdas)])
W <- if (k == 2) t(as.matrix(found)) else t(sapply(found, as.matrix))
writeBin(as.vector(t(W)), file.path(folder, "W.bin"))
cat("[", paste(format(seconds, digits = 15), collapse = ", "), "]\n", sep = "")
