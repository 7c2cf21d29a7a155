# nnet (size 10) and svm with their defaults, on the splits of a CSV file; rates as CSV on standard output.
# Rscript rivals.R FLOWERS.csv SEED
suppressPackageStartupMessages({ library(nnet); library(e1071) })
given <- commandArgs(trailingOnly = TRUE)
flowers <- read.csv(given[1], stringsAsFactors = TRUE)
seed <- as.integer(given[2])

report <- function(method, package, fit, k, train, test) {
  rate <- function(part) mean(as.character(predict(fit, part, type = "class")) == as.character(part$species))
  source <- paste("R", getRversion(), package, packageVersion(package))
  cat(sprintf('"%s",%d,%.6f,%.6f,%s\n', method, k, rate(train), rate(test), source))
}

cat("method,split,train,test,source\n")
for (k in unique(flowers$split)) {
  train <- subset(flowers, split == k & part == "train", select = -c(split, part))
  test <- subset(flowers, split == k & part == "test", select = -c(split, part))
  set.seed(seed + k)
  network <- nnet(species ~ ., data = train, size = 10, trace = FALSE)
  report("R nnet, size 10", "nnet", network, k, train, test)
  report("R e1071 svm", "e1071", svm(species ~ ., data = train), k, train, test)
}
