# Sourced by the checks that ask git which files there are: where git does not answer, they would
# check nothing and pass. A release, which is no checkout, is skipped (77).
[ -e .git ] || {
    echo "this folder is no git checkout: git does not know its files"
    exit 77
}
up=$(git rev-parse --show-cdup) && [ -z "$up" ] || {
    echo "git does not answer: what is to be checked is not known"
    exit 1
}
